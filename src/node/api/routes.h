// The API's routes (wire/api/FORMAT.md): rights, documents in requests and responses, and failures as problem
// documents.
#pragma once

#include "http/server.h"
#include "node/agent/agent.h"
#include "node/api/audit_log.h"
#include "node/api/operators.h"
#include "wire/api/doctor.h"

namespace carve::node {

// Responds to a caller that the kernel does not identify. It may read the metrics of all slices and no other
// path.
http::Response answer_metrics(Agent&, const http::Request&);

// The response to bytes that are not an HTTP request.
http::Response refuse_bytes(unsigned status, std::string detail);

// Identifies the process at the other end of the agent's unix socket and the slice in which it runs now; no
// value if the process has ended. The connection counts as inside that slice even if the process leaves it.
// Members of the operators' group may operate.
std::optional<http::Caller> identify(const Agent&, int socket, const Operators&);

class Routes {
 public:
  using Diagnose = std::function<api::Diagnosis()>;
  // Requests that act are stored in the audit log at `audit_path`; if it is empty, only in memory.
  Routes(Agent& agent, Diagnose diagnose, std::string audit_path = "");
  // Anonymous callers get 401 from every path.
  http::Response answer(const http::Request&, const http::Caller&);

 private:
  Agent& agent_;
  Diagnose diagnose_;
  int64_t started_ns_;
  AuditLog audit_;
};

}  // namespace carve::node
