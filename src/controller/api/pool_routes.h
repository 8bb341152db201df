// The routes of node pools, and the rules of pools for service documents.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

http::Response get_slicing(const Call&);

// Returns the pool that the submission would create or change, or why it is rejected.
Outcome<Object> planned_pool(const Call&, const Submission&);
// Succeeds if the pool has no nodes.
Outcome<void> check_pool_deletion(const Call&, const std::string& name);
// Returns the warnings for the submission's caller.
std::vector<std::string> pool_warnings(const Call&, const Submission&);

// Returns the response that rejects the submissions if a pool does not exist or cannot be sliced. No value if
// they are valid.
std::optional<http::Response> refused_by_pool(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
