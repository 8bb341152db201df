#include "kubernetes/node/rules/kubelet_metrics.h"

#include <string_view>
#include <vector>

namespace carve::kubernetes::node {
namespace {

using api::metric;

// Returns the word of the label `setting`, which has no characters that are escaped.
std::string setting_of(const api::TakenSample& sample) {
  const size_t begin = sample.labels.find('"'), end = sample.labels.rfind('"');
  return begin < end ? sample.labels.substr(begin + 1, end - begin - 1) : "";
}

template <class Value>
bool is_pending(const kubernetes::NodeSetting<Value>& setting) {
  return setting.desired && *setting.desired != setting.effective;
}

}  // namespace

std::map<std::string, bool> pending_settings(const std::optional<kubernetes::NodeDevices>& devices) {
  if (!devices) return {};
  return {{"mode", is_pending(devices->mode)}, {"policy", is_pending(devices->policy)}};
}

std::string metrics_text(const KubeletFigures& f, std::optional<std::string> agent,
                         api::MetricsFormat format) {
  api::Exposition out(format);
  std::vector<api::TakenSample> pending;
  if (agent) {
    pending = api::take_family(*agent, metric("carve_setting_pending"));
    out.append(*agent);
  }
  out.family(metric("carve_kubelet_info"));
  out.sample({f.version}, "1");
  out.family(metric("carve_agent_up"));
  out.sample(agent ? "1" : "0");
  out.family(metric("carve_watch_lag_seconds"));
  for (const auto& [resource, ns] : f.watch_lag_ns) out.sample({resource}, api::seconds_of(ns));
  out.family(metric("carve_relists_total"));
  for (const auto& [resource, count] : f.relists) out.sample({resource}, std::to_string(count));
  out.family(metric("carve_setting_pending"));
  for (const auto& [setting, is_pending] : f.pending) out.sample({setting}, is_pending ? "1" : "0");
  // The cluster's policy is the requested one; the agent's other settings are its own.
  for (const api::TakenSample& sample : pending)
    if (const std::string setting = setting_of(sample); !f.pending.contains(setting))
      out.sample({setting}, sample.value);
  return std::move(out).text();
}

}  // namespace carve::kubernetes::node
