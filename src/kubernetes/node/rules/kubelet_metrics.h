// Metrics for Prometheus: carve-kubelet's own and the agent's. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kubernetes/format/node_devices.h"

namespace carve::kubernetes::node {

struct KubeletFigures {
  std::string version;
  std::map<std::string, uint64_t> watch_lag_ns;  // By resource: time since the API server's last message.
  std::map<std::string, uint64_t> relists;       // By resource: lists after the first one.
  std::map<std::string, bool> pending;           // By setting of the node. Empty if unknown.
};

// Returns which settings have not taken effect yet. `devices` is the node's annotation.
std::map<std::string, bool> pending_settings(const std::optional<kubernetes::NodeDevices>& devices);

// Returns the agent's text and these figures. `agent` has no value if the agent does not respond.
std::string metrics_text(const KubeletFigures&, const std::optional<std::string>& agent);

}  // namespace carve::kubernetes::node
