// What the routes have in common: who asks and what he may see, documents read and written, and failures as
// problem documents (RFC 9457).
#pragma once

#include "node/agent/agent.h"
#include "node/serve/http.h"
#include "node/serve/views.h"
#include "wire/api/documents.h"

namespace carve::node {

// A refusal that is more than a kind and a sentence.
struct Refusal {
  api::Problem problem;
};
template <class T>
using Reply = Result<T, Refusal>;

tl::unexpected<Refusal> refuse(FailureKind, std::string detail);
inline tl::unexpected<Refusal> refuse(const Failure& f) { return refuse(f.kind, f.sentence); }

// For a path that exists and does not know the method: 405.
tl::unexpected<Refusal> refuse_method(std::string detail);

HttpResponse problem(const Refusal&);
inline HttpResponse problem(const tl::unexpected<Refusal>& r) { return problem(r.value()); }

template <class T>
HttpResponse document(const T& d, unsigned status = 200) {
  return {status, "application/json", api::write(d)};
}

template <class T>
Reply<T> read(const std::string& body) {
  auto d = api::read<T>(body.empty() ? "{}" : body, api::Reading::strict);
  if (!d) return refuse(FailureKind::invalid_argument, d.error());
  return *d;
}

// A number that the query may say: "?devices=3".
struct QueryNumber {
  std::string_view key;
  unsigned otherwise;         // Without a query.
  unsigned most;              // From 1.
  std::string_view sentence;  // What is possible, {} standing for `most`; told to whom it refuses.
};
Reply<unsigned> queried(const std::string& query, const QueryNumber&);

struct RequestContext {
  Agent& agent;
  const HttpRequest& request;
  Peer& peer;
  LiveSlice* inside;  // The slice that the caller is in, if any.
  int64_t started_ns;

  bool may_see_all() const;  // Root, and whoever runs the agent.
  bool may_see(const ledger::UsageRecord& record) const {
    return may_see_all() || record.slice.owner == peer.uid;
  }
  ViewContext look() const {
    return {agent, [this](const ledger::UsageRecord& record) { return may_see(record); }};
  }

  // The slice NAME, where the caller may see it; what is somebody else's does not exist for others.
  Reply<LiveSlice*> named(const std::string& name) const;
};

std::string who(const Peer&);  // "root", "uid 1000"

// One row per route; {} stands for a slice's name.
struct Route {
  const char* method;
  const char* path;
  HttpResponse (*plain)(const RequestContext&) = nullptr;
  HttpResponse (*of_slice)(const RequestContext&, const std::string& name) = nullptr;
  bool from_inside = false;  // A process of that slice may ask too, until its program has entered it.
};
std::span<const Route> slice_routes();    // slice_routes.cc: what is asked of slices,
std::span<const Route> machine_routes();  // machine_routes.cc: and of the machine and its agent.

}  // namespace carve::node
