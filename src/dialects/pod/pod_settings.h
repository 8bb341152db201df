// Settings of the machine or cluster that reads a pod.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/amounts.h"
#include "dialects/pod/dialect.h"

namespace carve::dialects {

inline constexpr const char* allow_unknown_gpu_option = "--allow-unknown-gpu-requests";

struct PodSettings {
  std::optional<MemoryUnit> unit;  // The cluster's unit; absent if each node has its own.
  std::set<Dialect> dialects{Dialect::carve, Dialect::ack, Dialect::vke, Dialect::hami};  // Enabled ones.
  // nvidia.com/gpu without other keys requests whole devices. If false, it is left to NVIDIA's device plugin.
  bool plain_nvidia_is_whole = true;
  std::vector<std::string> models;  // The cluster's device models, as the driver names them.

  // Pods with unknown GPU requests run without a slice (unknown_requests.h); otherwise they are rejected.
  bool allows_unknown_gpu_requests = false;
  bool has_other_makers = false;  // Cluster nodes may have devices of vendors other than NVIDIA.

  // Only for admission.
  std::vector<std::string> schedulers{"carve-scheduler"};  // In addition to the cluster's default.
  // Ordinary init containers may request the slice of the first container.
  bool init_containers_share = false;
  std::vector<std::string> runtime_classes;  // Runtime classes under which slices run; "" is the default.
};

}  // namespace carve::dialects
