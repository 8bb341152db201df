// Parses and checks a document of kind Pool.
#pragma once

#include <string_view>

#include "objects/pool_object.h"
#include "wire/api/field_error.h"
#include "workload/pool.h"

namespace carve::objects {

inline constexpr size_t max_pool_taints = 32;

// Parses the JSON text strictly and returns the pool, with its labels in Carve's terms. Fails with every
// error.
Result<objects::Pool, api::FieldErrors> read_pool(std::string_view json);

// Returns the pool for workload/pool.h. The spec must be valid.
workload::NodePool node_pool(std::string name, const objects::PoolSpec&);

}  // namespace carve::objects
