// What a pod does not say: the settings of the machine or the cluster that reads it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fronts/pod/container_request.h"

namespace carve::fronts {

struct PodSettings {
  std::optional<MemoryUnit> unit;  // Of the cluster; absent: each node has its own.
  std::set<Dialect> dialects{Dialect::carve, Dialect::ack, Dialect::vke, Dialect::hami};  // That are read.
  bool plain_nvidia_is_whole =
      true;                         // nvidia.com/gpu alone asks for whole devices; otherwise it is not ours.
  std::vector<std::string> models;  // That the cluster has, as the driver names them.

  // For admission alone.
  std::vector<std::string> schedulers{"carve-scheduler"};  // Besides the cluster's default.
  bool init_containers_share =
      false;  // Ordinary init containers may ask, for the slice of the first container.
  std::vector<std::string> runtime_classes;  // Under which slices run; "": the default.
};

}  // namespace carve::fronts
