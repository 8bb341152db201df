#include "controller/services/service_scaler.h"

#include <algorithm>

namespace carve::controller {
namespace {

using workload::AutoscaleDecision;

constexpr Ns shown_for_ns = 15 * workload::second_ns;  // A status that changes every second is unreadable.
constexpr Ns refusal_holds_ns = 60 * workload::second_ns;  // Capacity may be free again after this time.

bool carries_load(const workload::Replica& replica, bool has_port) {
  if (replica.retired_at || replica.program != workload::ProgramState::running) return false;
  return !has_port || replica.endpoint == workload::EndpointState::serving;
}

// Returns the sum over the replicas that carry load.
uint64_t busy_milli(const ScaleInput& in) {
  uint64_t sum = 0;
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    const auto slice = in.slices.find(in.replicas[i].slice);
    if (slice != in.slices.end() && carries_load(in.observed.replicas[i], in.spec.port.has_value()))
      sum += uint64_t{slice->second.busy_percent} * 1000;
  }
  return sum;
}

}  // namespace

AutoscaleDecision ServiceScaler::decide(const std::string& uid, const ScaleInput& in, Ns now) {
  const objects::Autoscale& wanted = *in.spec.autoscale;
  const uint32_t first = in.before != 0 ? in.before : in.spec.replicas;
  Scaled& service = services_.try_emplace(uid, Scaled{.scaler = {first, now}, .load = {}}).first->second;
  if (in.load) service.load.add(now, in.load->requests, in.load->in_flight);
  workload::AutoscaleInput input;
  for (const workload::Replica& replica : in.observed.replicas)
    input.ready += carries_load(replica, in.spec.port.has_value()) ? 1 : 0;
  if (wanted.metric == objects::AutoscaleMetric::qps)
    input.load_milli = service.load.per_second_milli();
  else if (wanted.metric == objects::AutoscaleMetric::concurrency)
    input.load_milli = service.load.mean_level_milli();
  else
    input.load_milli = busy_milli(in);
  if (in.refusal != nullptr && in.refusal->kind == FailureKind::insufficient_capacity &&
      now < workload::after(in.refusal->refusal.at, refusal_holds_ns))
    input.fits = static_cast<unsigned>(
        std::ranges::count_if(in.observed.replicas, [](const auto& replica) { return !replica.retired_at; }));
  AutoscaleDecision decision = service.scaler.decide(
      {.min = wanted.min, .max = wanted.max, .target = wanted.target, .metric = text(wanted.metric)}, input,
      now);
  const bool is_same =
      service.shown && service.shown->replicas == decision.replicas && service.shown->limit == decision.limit;
  if (!is_same || now >= workload::after(service.shown_at, shown_for_ns)) {
    service.shown = decision;
    service.shown_at = now;
  }
  return *service.shown;
}

}  // namespace carve::controller
