#include "kubernetes/coordinator/metrics/coordinator_metrics.h"

#include "wire/api/exposition.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Exposition;

template <class Value, class Text>
void by_word(Exposition& out, const char* label, const std::map<std::string, Value>& values, Text text) {
  for (const auto& [word, value] : values) out.sample({{label, word}}, text(value));
}

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

std::string metrics_text(const CoordinatorFigures& f) {
  Exposition out;
  out.family("carve_coordinator_info", "gauge", "The version of the coordinator.");
  out.sample({{"version", f.version}}, "1");
  out.family("carve_coordinator_active", "gauge", "1 if the scheduler of this replica holds the Lease.");
  out.sample({}, f.is_active ? "1" : "0");
  out.family("carve_extender_seconds_count", "counter", "Responses to the scheduler.");
  by_word(out, "verb", f.verbs, [](const VerbFigures& v) { return number(v.answers); });
  out.family("carve_extender_seconds_sum", "counter",
             "Total time spent on responses to the scheduler, in seconds.");
  by_word(out, "verb", f.verbs, [](const VerbFigures& v) { return api::seconds_of(v.took_ns); });
  out.family("carve_binds_total", "counter", "Bindings that the scheduler requested.");
  by_word(out, "result", f.binds, number);
  out.family("carve_binds_open", "gauge",
             "Bindings whose response was lost and whose result is being checked.");
  out.sample({}, number(f.open_binds));
  out.family("carve_webhook_total", "counter", "Reviews of pods, by dialect and result.");
  for (const auto& [key, count] : f.webhook)
    out.sample({{"dialect", key.first}, {"result", key.second}}, number(count));
  out.family("carve_cached_pods", "gauge", "Pods in the cache.");
  out.sample({}, number(f.cached_pods));
  out.family("carve_watch_lag_seconds", "gauge", "Seconds since the last message from the API server.");
  by_word(out, "resource", f.watch_lag_ns, [](uint64_t ns) { return api::seconds_of(ns); });
  out.family("carve_relists_total", "counter", "Number of lists of a resource after the first one.");
  by_word(out, "resource", f.relists, number);
  out.family("carve_overcommitted_devices", "gauge",
             "Devices on which pod annotations grant more than the device has.");
  out.sample({}, number(f.overcommitted_devices));
  out.family("carve_ledger_drift_devices", "gauge",
             "Devices whose slices differ between the node's ledger and the cache.");
  out.sample({}, number(f.drifting_devices));
  out.family("carve_setting_pending", "gauge", "1 if a setting has not taken effect yet.");
  by_word(out, "setting", f.pending, [](bool is_pending) { return number(is_pending); });
  out.family("carve_unreadable_objects", "gauge", "Objects whose annotations cannot be read.");
  by_word(out, "resource", f.unreadable, number);
  return out.text();
}

}  // namespace carve::kubernetes::coordinator
