// The routes of node pools, and what pools forbid to the documents of services.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

http::Response list_pools(const Call&);
http::Response get_pool(const Call&);
http::Response put_pool(const Call&);
http::Response patch_pool(const Call&);
http::Response delete_pool(const Call&);
http::Response get_slicing(const Call&);

// Returns the pool that the submission would make, or what forbids it.
Outcome<Object> planned_pool(const Call&, const Submission&);
// Returns what the submission's caller should know.
std::vector<std::string> pool_warnings(const Call&, const Submission&);

// Returns the answer that refuses the submissions because of their pools: one that does not exist, or one
// that cannot be sliced. No value: nothing forbids them.
std::optional<http::Response> refused_by_pool(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
