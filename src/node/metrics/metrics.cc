#include "node/metrics/metrics.h"

#include "node/metrics/dcgm_metrics.h"

namespace carve::node {
namespace {

using api::metric;

// A metric of a slice part. The value is empty if the part has none.
struct PartMetric {
  const api::MetricFamily& family;
  std::string (*value)(const api::SlicePart&);
};

std::string whole(uint64_t count) { return std::to_string(count); }
std::string millis(uint64_t count) { return fmt::format("{}.{:03}", count / 1000, count % 1000); }

// Returns a value that the arbiter measured; empty if the device is not arbitrated.
template <auto field, auto written>
std::string of_compute(const api::SlicePart& p) {
  return p.compute ? written((*p.compute).*field) : "";
}
// A reading in units of 1 / `divisor`; empty if the driver does not report it.
std::string reading(std::optional<uint32_t> value, double divisor) {
  return value ? fmt::format("{:g}", *value / divisor) : "";
}
using C = api::PartCompute;
using Part = api::SlicePart;

constexpr PartMetric of_part[] = {
    {metric("carve_slice_memory_quota_bytes"), [](const Part& p) { return whole(p.quota_bytes); }},
    {metric("carve_slice_memory_charged_bytes"), [](const Part& p) { return whole(p.charged_bytes); }},
    {metric("carve_slice_memory_used_bytes"), [](const Part& p) { return whole(p.used_bytes); }},
    {metric("carve_slice_memory_peak_bytes"), [](const Part& p) { return whole(p.peak_bytes); }},
    {metric("carve_slice_memory_spilled_bytes"),
     [](const Part& p) { return p.spill_bytes == 0 ? "" : whole(p.spilled_bytes); }},
    {metric("carve_slice_energy_joules_total"),
     [](const Part& p) { return p.energy_millijoules ? millis(*p.energy_millijoules) : ""; }},
    {metric("carve_slice_compute_share_ratio"),
     [](const Part& p) { return p.share_bp == 0 ? "" : api::ratio_of(p.share_bp); }},
    {metric("carve_slice_compute_achieved_ratio"), of_compute<&C::achieved_1s_bp, api::ratio_of>},
    {metric("carve_slice_compute_utilization_ratio"),
     [](const Part& p) { return api::ratio_of(p.utilization_percent * 100); }},
    {metric("carve_slice_slowdown_ratio"),
     [](const Part& p) {
       return p.compute && p.compute->slowdown_60s_bp != 0 ? api::ratio_of(p.compute->slowdown_60s_bp) : "";
     }},
    {metric("carve_slice_compute_busy_seconds_total"), of_compute<&C::busy_ns, api::seconds_of>},
    {metric("carve_slice_compute_waiting_seconds_total"), of_compute<&C::waiting_ns, api::seconds_of>},
    {metric("carve_slice_compute_throttled_seconds_total"), of_compute<&C::throttled_ns, api::seconds_of>},
    {metric("carve_slice_compute_burst_seconds_total"), of_compute<&C::burst_ns, api::seconds_of>},
    {metric("carve_slice_compute_waits_total"), of_compute<&C::waits, whole>},
    {metric("carve_slice_compute_leases_total"), of_compute<&C::leases, whole>},
    {metric("carve_slice_compute_overruns_total"), of_compute<&C::overruns, whole>},
    {metric("carve_slice_compute_wait_p50_seconds"), of_compute<&C::wait_p50_ns, api::seconds_of>},
    {metric("carve_slice_compute_wait_p99_seconds"), of_compute<&C::wait_p99_ns, api::seconds_of>},
    {metric("carve_slice_copied_to_device_bytes_total"), of_compute<&C::copied_to_device_bytes, whole>},
    {metric("carve_slice_copied_to_host_bytes_total"), of_compute<&C::copied_to_host_bytes, whole>},
    {metric("carve_slice_copied_on_device_bytes_total"), of_compute<&C::copied_on_device_bytes, whole>},
};

struct DeviceMetric {
  const api::MetricFamily& family;
  std::string (*value)(const api::Device&);
};

constexpr DeviceMetric of_device[] = {
    {metric("carve_device_memory_native_bytes"), [](const api::Device& d) { return whole(d.native_bytes); }},
    {metric("carve_device_memory_usable_bytes"), [](const api::Device& d) { return whole(d.usable_bytes); }},
    {metric("carve_device_memory_granted_bytes"),
     [](const api::Device& d) { return whole(d.granted_bytes); }},
    {metric("carve_device_memory_used_bytes"), [](const api::Device& d) { return whole(d.used_bytes); }},
    {metric("carve_device_healthy"),
     [](const api::Device& d) { return whole(d.health.state == HealthState::ok); }},
    {metric("carve_device_temperature_celsius"),
     [](const api::Device& d) { return reading(d.readings.temperature_celsius, 1); }},
    {metric("carve_device_power_watts"),
     [](const api::Device& d) { return reading(d.readings.power_milliwatts, 1000); }},
    {metric("carve_device_energy_joules_total"),
     [](const api::Device& d) {
       return d.readings.energy_millijoules ? millis(*d.readings.energy_millijoules) : "";
     }},
    {metric("carve_device_sm_clock_hertz"),
     [](const api::Device& d) {
       return d.readings.sm_clock_mhz ? whole(uint64_t{*d.readings.sm_clock_mhz} * 1'000'000) : "";
     }},
    {metric("carve_device_slices"), [](const api::Device& d) { return whole(d.slices); }},
    {metric("carve_device_unmanaged_processes"),
     [](const api::Device& d) { return whole(d.unmanaged_processes.size()); }},
    {metric("carve_device_utilization_ratio"),
     [](const api::Device& d) { return api::ratio_of(d.utilization_percent * 100); }},
    {metric("carve_device_compute_granted_ratio"),
     [](const api::Device& d) { return api::ratio_of(d.share_granted_bp); }},
    {metric("carve_device_compute_idle_ratio"),
     [](const api::Device& d) { return d.arbitration ? api::ratio_of(d.arbitration->idle_1s_bp) : ""; }},
    {metric("carve_device_compute_switches_total"),
     [](const api::Device& d) { return d.arbitration ? whole(d.arbitration->switches) : ""; }},
    {metric("carve_device_compute_switch_seconds"),
     [](const api::Device& d) { return d.arbitration ? api::seconds_of(d.arbitration->switch_ns) : ""; }},
};

PodContainer pod_of(const api::Slice& slice) {
  return slice.holder && slice.holder->pod ? *slice.holder->pod : PodContainer{};
}

void write_node(api::Exposition& out, const NodeFigures& node) {
  out.family(metric("carve_build_info"));
  out.sample({node.version, node.simulated}, "1");
  out.family(metric("carve_node_state"));
  for (const std::string_view state : Words<NodePhase>::words)
    out.sample({std::string(state)}, state == text(node.phase) ? "1" : "0");
  out.family(metric("carve_node_enforcement"));
  out.sample({std::string(text(node.memory_enforcement))}, "1");
  out.family(metric("carve_setting_pending"));
  for (const auto& [setting, pending] : node.pending) out.sample({setting}, pending ? "1" : "0");
  out.family(metric("carve_driver_samples_total"));
  out.sample(std::to_string(node.samples));
  out.family(metric("carve_driver_sample_seconds"));
  out.sample(api::seconds_of(node.sample_took_ns));
  out.family(metric("carve_agent_loop_longest_turn_seconds"));
  out.sample(api::seconds_of(node.longest_turn_ns));
}

void write_devices(api::Exposition& out, const NodeFigures& node) {
  out.family(metric("carve_device_info"));
  for (const api::Device& d : node.devices)
    out.sample({std::to_string(d.index), d.uuid, d.name,
                std::string(text(d.policy.effective.value_or(d.policy.desired)))},
               "1");
  for (const DeviceMetric& one : of_device) {
    out.family(one.family);
    for (const api::Device& d : node.devices)
      if (const std::string value = one.value(d); !value.empty())
        out.sample({std::to_string(d.index), d.uuid}, value);
  }
  out.family(metric("carve_device_xid_total"));
  for (const api::Device& d : node.devices)
    for (const XidCount& xid : d.xids)
      out.sample({whole(d.index), d.uuid, whole(xid.code)}, whole(xid.count));
}

// Writes the families of whole slices.
void write_slices(api::Exposition& out, const NodeFigures& node) {
  out.family(metric("carve_slice_idle_seconds"));
  for (const api::Slice& s : node.slices) {
    const PodContainer pod = pod_of(s);
    out.sample({s.name, pod.namespace_, pod.name, pod.container, s.account}, whole(s.idle_seconds));
  }
  out.family(metric("carve_slice_xid_total"));
  for (const api::Slice& s : node.slices) {
    const PodContainer pod = pod_of(s);
    for (const XidCount& xid : s.xids)
      out.sample({s.name, pod.namespace_, pod.name, pod.container, s.account, whole(xid.code)},
                 whole(xid.count));
  }
  out.family(metric("carve_slice_violations_total"));
  for (const api::Slice& s : node.slices) {
    const PodContainer pod = pod_of(s);
    for (const Violation& violation : s.violations)
      out.sample(
          {s.name, pod.namespace_, pod.name, pod.container, s.account, std::string(text(violation.kind))},
          whole(violation.count));
  }
}

struct LabelledPart {
  const api::Slice* slice;
  const api::SlicePart* part;
  api::LabelText labels;
};

void write_parts(api::Exposition& out, const NodeFigures& node) {
  std::vector<LabelledPart> parts;
  out.family(metric("carve_slice_info"));
  for (const api::Slice& s : node.slices)
    for (const api::SlicePart& p : s.parts) {
      const PodContainer pod = pod_of(s);
      const std::string values[] = {s.name,   whole(p.index), p.uuid,   pod.namespace_,
                                    pod.name, pod.container,  s.account};
      parts.push_back({&s, &p, {api::metric_labels::part, values}});
      out.sample(
          {s.name, whole(p.index), p.uuid, pod.namespace_, pod.name, pod.container, s.account,
           std::string(text(s.policy)), std::string(text(s.latency_class)), std::string(text(s.isolation)),
           std::string(text(s.enforcement.compute.level)), whole(s.owner_uid)},
          "1");
    }
  for (const PartMetric& one : of_part) {
    out.family(one.family);
    for (const LabelledPart& p : parts)
      if (const std::string value = one.value(*p.part); !value.empty()) out.sample(p.labels, value);
  }
}

}  // namespace

std::string metrics_text(const NodeFigures& node, api::MetricsFormat format) {
  api::Exposition out(format);
  write_node(out, node);
  write_devices(out, node);
  write_slices(out, node);
  write_parts(out, node);
  if (node.dcgm_names) write_dcgm_metrics(out, node);
  return std::move(out).text();
}

}  // namespace carve::node
