// The four system labels of a node under all their names. Clusters of Volcengine and of Alibaba Cloud have
// labels with the same meaning and other words; each is translated to Carve's, and only Carve's are stored.
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

// Returns Carve's name of the label.
std::string our_key(std::string_view key);

// Returns Carve's word for the label's value, or a message about an invalid value.
Result<std::string, std::string> our_value(std::string_view key, std::string_view value);

// Returns all labels in Carve's terms, or every error: an invalid value, and two names of one label with
// different values. `field` is the path for the errors: "spec.labels".
Result<workload::Labels, api::FieldErrors> our_labels(const std::map<std::string, std::string>& labels,
                                                      const std::string& field);

}  // namespace carve::dialects
