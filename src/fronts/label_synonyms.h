// The four system labels of a node under all their names. Clusters of Volcengine and of Alibaba Cloud have
// labels with the same meaning and other words; each is translated to ours, and only ours are stored.
//
//   | ours                      | others                                                                    |
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

namespace carve::fronts {

// Returns our name of the label.
std::string our_key(std::string_view key);

// Returns our word for the label's value, or a sentence about a value that the label cannot have.
Result<std::string, std::string> our_value(std::string_view key, std::string_view value);

// Returns all labels in our words, or every error: a wrong value, and two names of one label with different
// values. `field`: "spec.labels", for the errors.
Result<workload::Labels, api::FieldErrors> our_labels(const std::map<std::string, std::string>& labels,
                                                      const std::string& field);

}  // namespace carve::fronts
