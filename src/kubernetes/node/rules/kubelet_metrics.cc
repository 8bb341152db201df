#include "kubernetes/node/rules/kubelet_metrics.h"

#include "wire/api/exposition.h"

namespace carve::kubernetes::node {
namespace {

template <class Value>
bool is_pending(const kubernetes::NodeSetting<Value>& setting) {
  return setting.desired && *setting.desired != setting.effective;
}

}  // namespace

std::map<std::string, bool> pending_settings(const std::optional<kubernetes::NodeDevices>& devices) {
  if (!devices) return {};
  return {{"mode", is_pending(devices->mode)}, {"policy", is_pending(devices->policy)}};
}

std::string metrics_text(const KubeletFigures& f, const std::optional<std::string>& agent) {
  api::Exposition out;
  out.family("carve_kubelet_info", "gauge", "The version of carve-kubelet, always 1.");
  out.sample({{"version", f.version}}, "1");
  out.family("carve_agent_up", "gauge", "1 if the node's agent responds.");
  out.sample({}, agent ? "1" : "0");
  out.family("carve_watch_lag_seconds", "gauge", "Seconds since the last message from the API server.");
  for (const auto& [resource, ns] : f.watch_lag_ns) out.sample({{"resource", resource}}, api::seconds_of(ns));
  out.family("carve_relists_total", "counter", "Number of lists of a resource after the first one.");
  for (const auto& [resource, count] : f.relists) out.sample({{"resource", resource}}, std::to_string(count));
  out.family("carve_setting_pending", "gauge", "1 if a setting has not taken effect yet.");
  for (const auto& [setting, pending] : f.pending) out.sample({{"setting", setting}}, pending ? "1" : "0");
  return agent.value_or("") + out.text();
}

}  // namespace carve::kubernetes::node
