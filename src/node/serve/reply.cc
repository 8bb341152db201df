#include "node/serve/reply.h"

#include <unistd.h>

#include <charconv>

namespace carve::node {

using K = FailureKind;

tl::unexpected<Refusal> refuse(unsigned status, const char* type, const char* title, std::string detail) {
  api::Problem problem;
  problem.type = type;
  problem.title = title;
  problem.status = status;
  problem.detail = std::move(detail);
  return tl::unexpected(Refusal{std::move(problem)});
}

tl::unexpected<Refusal> refuse(const Failure& f) {
  switch (f.kind) {
    case K::bad_request: return refuse(400, "carve:bad-request", "the request is wrong", f.sentence);
    case K::not_permitted: return refuse(403, "carve:not-permitted", "not permitted", f.sentence);
    case K::not_found: return refuse(404, "carve:not-found", "not found", f.sentence);
    case K::conflict: return refuse(409, "carve:conflict", "in conflict with what is", f.sentence);
    case K::no_room: return refuse(409, "carve:does-not-fit", "does not fit", f.sentence);
    case K::out_of_order:
      return refuse(503, "carve:out-of-order", "the agent cannot do this now", f.sentence);
  }
  return refuse(500, "about:blank", "internal", f.sentence);
}

HttpAnswer problem(const Refusal& r) {
  return {r.problem.status, "application/problem+json", api::write(r.problem)};
}

Reply<unsigned> queried(const std::string& query, const QueryNumber& q) {
  if (query.empty()) return q.otherwise;
  unsigned number = 0;
  const char* const end = query.data() + query.size();
  const std::string begin = fmt::format("{}=", q.key);
  const bool whole =
      query.starts_with(begin) && std::from_chars(query.data() + begin.size(), end, number).ptr == end;
  if (!whole || number < 1 || number > q.most)
    return refuse(
        400, "carve:bad-request", "the request is wrong",
        fmt::format("{}: ?{}={}", fmt::format(fmt::runtime(q.sentence), q.most), q.key, q.otherwise));
  return number;
}

bool Asked::sees_all() const { return peer.uid == 0 || peer.uid == geteuid(); }

Reply<LiveSlice*> Asked::named(const std::string& name) const {
  LiveSlice* slice = agent.find(name);
  if (slice == nullptr || !may_see(slice->record))
    return refuse(404, "carve:no-such-slice", "no such slice",
                  fmt::format("there is no slice '{}'; carve ps lists yours", name.substr(0, 80)));
  return slice;
}

std::string who(const Peer& peer) { return peer.uid == 0 ? "root" : fmt::format("uid {}", peer.uid); }

}  // namespace carve::node
