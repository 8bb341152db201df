// carve-kubelet's figures beside those of the agent, as metrics for Prometheus. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "wire/kube/node_devices.h"

namespace carve::kubelet {

struct KubeletFigures {
  std::string version;
  std::map<std::string, uint64_t> watch_lag_ns;  // By resource: since the API server was heard.
  std::map<std::string, uint64_t> relists;       // By resource: lists after the first one.
  std::map<std::string, bool> pending;           // By setting of the node; empty: nothing is known.
};

// Returns which settings have not taken effect yet. `devices`: as the node's annotation says.
std::map<std::string, bool> pending_settings(const std::optional<kube::NodeDevices>& devices);

// Returns the agent's text and these figures. `agent`: no value: it does not answer.
std::string metrics_text(const KubeletFigures&, const std::optional<std::string>& agent);

}  // namespace carve::kubelet
