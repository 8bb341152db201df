// Prometheus metrics of carve-kubelet and of the agent. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kubernetes/format/node_devices.h"
#include "wire/api/exposition.h"

namespace carve::kubernetes::node {

struct KubeletFigures {
  std::string version;
  std::map<std::string, uint64_t> watch_lag_ns;  // By resource: time since the API server's last message.
  std::map<std::string, uint64_t> relists;       // By resource: number of lists after the first one.
  std::map<std::string, bool> pending;           // By setting of the node; empty if unknown.
};

// Returns which settings have not taken effect yet. `devices` is the node's annotation.
std::map<std::string, bool> pending_settings(const std::optional<kubernetes::NodeDevices>& devices);

// Returns the agent's text followed by these metrics. `agent` is in the same format; it has no value if the
// agent does not respond. A setting that both report has one series, with the cluster's value.
std::string metrics_text(const KubeletFigures&, std::optional<std::string> agent, api::MetricsFormat);

}  // namespace carve::kubernetes::node
