#include "node/api/reply.h"

#include <charconv>

namespace carve::node {

tl::unexpected<Refusal> refuse(FailureKind kind, std::string detail) {
  return tl::unexpected(Refusal{api::problem_of(kind, std::move(detail))});
}

tl::unexpected<Refusal> refuse_method(std::string detail) {
  tl::unexpected<Refusal> refusal = refuse(FailureKind::invalid_argument, std::move(detail));
  refusal.value().problem.status = 405;
  return refusal;
}

http::Response problem(const Refusal& r) {
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
        FailureKind::invalid_argument,
        fmt::format("{}: ?{}={}", fmt::format(fmt::runtime(q.message), q.most), q.key, q.otherwise));
  return number;
}

Reply<SliceView> RequestContext::named(const std::string& name) const {
  std::vector<SliceView> found = agent.slices({.name = name});
  if (found.empty() || !may_see(found.front().record))
    return refuse(FailureKind::not_found,
                  fmt::format("there is no slice '{}'; carve ps lists your slices", name.substr(0, 80)));
  return std::move(found.front());
}

}  // namespace carve::node
