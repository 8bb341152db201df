// Documents of the API, version 1: the requests that changed something, or attempted to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/api/json.h"

namespace carve::api {

struct AuditEntry {
  uint64_t time_ns = 0;  // UTC.
  std::string caller;    // "root", "uid 1000", "account research"
  // "create", "set", "stop", and "slice a", "node", "limit user:*". Entries of the controller contain the method and the
  // path of the request instead.
  std::string verb, object;
  uint32_t status = 0;  // HTTP status of the response.
  std::string message;  // Why the request was refused. The controller leaves it empty.
};

// GET /v1/audit of the agent and of the controller, oldest first
struct AuditList {
  std::vector<AuditEntry> items;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::AuditEntry)
CARVE_DECLARE_DOCUMENT(api::AuditList)
