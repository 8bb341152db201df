// Settings of the machine or cluster that affect how pods are read.
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
  std::set<Dialect> dialects{Dialect::carve, Dialect::ack, Dialect::vke, Dialect::hami};  // Enabled dialects.
  // Whether nvidia.com/gpu without other keys requests whole devices. If false, it is left to NVIDIA's device
  // plugin.
  bool plain_nvidia_is_whole = true;
  std::vector<std::string> models;  // The cluster's device models, as the driver names them.

  // If true, pods with unknown GPU requests run without a slice (unknown_requests.h); otherwise they are
  // rejected.
  bool allows_unknown_gpu_requests = false;
  bool has_other_makers = false;  // The cluster may have nodes with devices of other vendors.

  // The settings below are used only by admission.
  std::vector<std::string> schedulers{"carve-scheduler"};  // In addition to the cluster's default.
  // Whether ordinary init containers may share the slice of the first container.
  bool init_containers_share = false;
  std::vector<std::string> runtime_classes;  // Runtime classes under which slices run; "" is the default.
};

}  // namespace carve::dialects
