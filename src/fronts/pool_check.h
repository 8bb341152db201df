// A document of kind Pool, read and checked.
#pragma once

#include <string_view>

#include "wire/api/field_error.h"
#include "wire/objects/pool_object.h"
#include "workload/pool.h"

namespace carve::fronts {

inline constexpr size_t max_pool_taints = 32;
inline constexpr std::string_view taint_effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

// Reads the JSON text strictly and returns the pool with labels in our words, or every error.
Result<objects::Pool, api::FieldErrors> read_pool(std::string_view json);

// Returns the pool for workload/pool.h. The spec was checked.
workload::NodePool node_pool(std::string name, const objects::PoolSpec&);

}  // namespace carve::fronts
