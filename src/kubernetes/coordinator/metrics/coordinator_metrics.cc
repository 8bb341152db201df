#include "kubernetes/coordinator/metrics/coordinator_metrics.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Exposition;
using api::metric;

template <class Value, class Text>
void by_word(Exposition& out, const std::map<std::string, Value>& values, Text text) {
  for (const auto& [word, value] : values) out.sample({word}, text(value));
}

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

std::string metrics_text(const CoordinatorFigures& f, api::MetricsFormat format) {
  Exposition out(format);
  out.family(metric("carve_coordinator_info"));
  out.sample({f.version}, "1");
  out.family(metric("carve_coordinator_active"));
  out.sample(f.is_active ? "1" : "0");
  out.family(metric("carve_extender_seconds"));
  for (const auto& [verb, figures] : f.verbs) {
    const std::string values[] = {verb};
    out.sample(api::LabelText(api::metric_labels::verb, values), figures.answers,
               api::seconds_of(figures.took_ns));
  }
  out.family(metric("carve_binds_total"));
  by_word(out, f.binds, number);
  out.family(metric("carve_binds_open"));
  out.sample(number(f.open_binds));
  out.family(metric("carve_webhook_total"));
  for (const auto& [key, count] : f.webhook) out.sample({key.first, key.second}, number(count));
  out.family(metric("carve_cached_pods"));
  out.sample(number(f.cached_pods));
  out.family(metric("carve_watch_lag_seconds"));
  by_word(out, f.watch_lag_ns, [](uint64_t ns) { return api::seconds_of(ns); });
  out.family(metric("carve_relists_total"));
  by_word(out, f.relists, number);
  out.family(metric("carve_overcommitted_devices"));
  out.sample(number(f.overcommitted_devices));
  out.family(metric("carve_ledger_drift_devices"));
  out.sample(number(f.drifting_devices));
  out.family(metric("carve_setting_pending"));
  by_word(out, f.pending, [](bool is_pending) { return number(is_pending); });
  out.family(metric("carve_unreadable_objects"));
  by_word(out, f.unreadable, number);
  return std::move(out).text();
}

}  // namespace carve::kubernetes::coordinator
