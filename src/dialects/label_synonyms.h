// The four system labels of a node under all their names. Clusters of Volcengine and Alibaba Cloud use other
// names and values for the same settings. Each is translated to Carve's, and only Carve's labels are stored.
//
//   | Carve's                   | others                                                                    |
//   |---------------------------|---------------------------------------------------------------------------|
//   | carve.dev/compute-policy  | vke.volcengine.com/mgpu-compute-policy                                    |
//   | carve.dev/mode            | ack.node.gpu.schedule: share = none, cgpu = memory, core_mem =            |
//   |                           | memory-and-compute, default = exclusive; vke.node.gpu.schedule: mgpu =    |
//   |                           | memory-and-compute, nvidia = exclusive                                    |
//   | carve.dev/placement       | ack.node.gpu.placement                                                    |
//   | carve.dev/memory-unit     | gpuMemoryUnit                                                             |
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "wire/api/field_error.h"
#include "workload/pool.h"

namespace carve::dialects {

// Returns Carve's key for the label.
std::string our_key(std::string_view key);

// Returns Carve's value for the label's value. Fails with a message if the value is invalid.
Result<std::string, std::string> our_value(std::string_view key, std::string_view value);

// Returns all labels with Carve's keys and values. Fails with every error: an invalid value, or synonyms with
// different values. `field` is the path for the errors: "spec.labels".
Result<workload::Labels, api::FieldErrors> our_labels(const std::map<std::string, std::string>& labels,
                                                      const std::string& field);

}  // namespace carve::dialects
