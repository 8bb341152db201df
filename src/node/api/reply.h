// Common parts of the routes: the caller and its rights, parsing and formatting documents, and failures as
// problem documents (RFC 9457).
#pragma once

#include "http/server.h"
#include "node/agent/agent.h"
#include "node/api/audit_log.h"
#include "node/api/views.h"
#include "wire/api/doctor.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::node {

// A rejection with more fields than a kind and a message.
struct Refusal {
  api::Problem problem;
};
template <class T>
using Reply = Result<T, Refusal>;

tl::unexpected<Refusal> refuse(FailureKind, std::string detail);
inline tl::unexpected<Refusal> refuse(const Failure& f) { return refuse(f.kind, f.message); }

// Returns status 405, for an existing path that does not support the method.
tl::unexpected<Refusal> refuse_method(std::string detail);

http::Response problem(const Refusal&);
inline http::Response problem(const tl::unexpected<Refusal>& r) { return problem(r.value()); }

template <class T>
http::Response document(const T& d, unsigned status = 200) {
  return {status, "application/json", api::write(d)};
}

template <class T>
Reply<T> read(const std::string& body) {
  auto d = api::read<T>(body.empty() ? "{}" : body, api::Reading::strict);
  if (!d) return refuse(FailureKind::invalid_argument, d.error());
  return *d;
}

// A number in a query, such as "?devices=3".
struct QueryNumber {
  std::string_view key;
  unsigned otherwise;        // The value if the query has none.
  unsigned most;             // The maximum; the minimum is 1.
  std::string_view message;  // The rule, with {} for `most`; part of the error.
};
Reply<unsigned> queried(const std::string& query, const QueryNumber&);

struct RequestContext {
  Agent& agent;
  const http::Request& request;
  const http::Caller& caller;
  int64_t started_ns;
  const std::function<api::Diagnosis()>& diagnose;
  const AuditLog& audit;

  bool may_see(const ledger::UsageRecord& record) const { return caller.may_see(record.slice.owner); }
  Viewer viewer() const { return {*caller.uid(), caller.may_operate()}; }
  ViewContext look() const {
    return {agent, [this](uint32_t owner) { return caller.may_see(owner); }};
  }

  // Returns the live slice with this name. A slice that the caller may not see is reported as not found.
  Reply<SliceView> named(const std::string& name) const;
};

// One route. {} in the path means a slice's name.
struct Route {
  const char* method;
  const char* path;
  http::Response (*plain)(const RequestContext&) = nullptr;
  http::Response (*of_slice)(const RequestContext&, const std::string& name) = nullptr;
  // The verb and the kind of the object in the audit log. Null for a route that changes nothing that users share.
  const char* verb = nullptr;
  const char* audited = nullptr;
  bool from_inside = false;  // Whether a process in that slice may call before its program has entered.
};
std::span<const Route> slice_routes();    // slice_routes.cc: the routes of slices.
std::span<const Route> machine_routes();  // machine_routes.cc: the routes of the node and its agent.

}  // namespace carve::node
