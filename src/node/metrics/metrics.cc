#include "node/metrics/metrics.h"

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::node {
namespace {

struct Part {
  const api::Slice& slice;
  const api::SlicePart& part;
};

// A metric of a slice part: its name, type, help, and value as text. The value is empty if the part has none.
struct PartMetric {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const Part&);
};

// Returns a value that the arbiter measured; empty if the device is not arbitrated.
template <auto field, auto written>
std::string of_compute(const Part& p) {
  return p.part.compute ? written((*p.part.compute).*field) : "";
}
std::string whole(uint64_t count) { return std::to_string(count); }
// A reading in units of 1 / `divisor`; empty if the driver does not report it.
std::string reading(std::optional<uint32_t> value, double divisor) {
  return value ? fmt::format("{:g}", *value / divisor) : "";
}
using C = api::PartCompute;

constexpr PartMetric of_part[] = {
    {"carve_slice_memory_quota_bytes", "gauge", "Bytes that the slice may hold on the device.",
     [](const Part& p) { return whole(p.part.quota_bytes); }},
    {"carve_slice_memory_charged_bytes", "gauge", "Bytes that count against the quota.",
     [](const Part& p) { return whole(p.part.charged_bytes); }},
    {"carve_slice_memory_used_bytes", "gauge", "Bytes that the driver reports for the slice's processes.",
     [](const Part& p) { return whole(p.part.used_bytes); }},
    {"carve_slice_memory_peak_bytes", "gauge", "Largest number of bytes ever charged.",
     [](const Part& p) { return whole(p.part.peak_bytes); }},
    {"carve_slice_memory_spilled_bytes", "gauge", "Managed bytes beyond the quota that are in host memory.",
     [](const Part& p) { return p.part.spill_bytes == 0 ? "" : whole(p.part.spilled_bytes); }},
    {"carve_slice_compute_share_ratio", "gauge", "Granted share of the device's compute.",
     [](const Part& p) { return p.part.share_bp == 0 ? "" : api::ratio_of(p.part.share_bp); }},
    {"carve_slice_compute_achieved_ratio", "gauge",
     "Achieved share of the device's compute in the last second.",
     of_compute<&C::achieved_1s_bp, [](uint64_t v) { return api::ratio_of(v); }>},
    {"carve_slice_compute_busy_seconds_total", "counter",
     "Time charged to the slice: its work and the switches to it.", of_compute<&C::busy_ns, api::seconds_of>},
    {"carve_slice_compute_waiting_seconds_total", "counter",
     "Time in which the slice had work and another slice held the device.",
     of_compute<&C::waiting_ns, api::seconds_of>},
    {"carve_slice_compute_throttled_seconds_total", "counter",
     "Time in which the slice had work and the device was free, but the slice's share was used up.",
     of_compute<&C::throttled_ns, api::seconds_of>},
    {"carve_slice_compute_burst_seconds_total", "counter", "Time charged beyond the slice's share.",
     of_compute<&C::burst_ns, api::seconds_of>},
    {"carve_slice_compute_waits_total", "counter", "Number of waits for the device.",
     of_compute<&C::waits, whole>},
    {"carve_slice_compute_leases_total", "counter", "Leases granted to the slice.",
     of_compute<&C::leases, whole>},
    {"carve_slice_compute_overruns_total", "counter", "Leases whose drain reached its time limit.",
     of_compute<&C::overruns, whole>},
    {"carve_slice_compute_utilization_ratio", "gauge",
     "Part of the driver's last sampling period in which the slice's kernels ran.",
     [](const Part& p) { return api::ratio_of(p.part.utilization_percent * 100); }},
    {"carve_slice_copied_to_device_bytes_total", "counter", "Bytes that the slice's copies moved to devices.",
     of_compute<&C::copied_to_device_bytes, whole>},
    {"carve_slice_copied_to_host_bytes_total", "counter", "Bytes that the slice's copies moved to the host.",
     of_compute<&C::copied_to_host_bytes, whole>},
    {"carve_slice_copied_on_device_bytes_total", "counter",
     "Bytes that the slice's copies moved inside devices.", of_compute<&C::copied_on_device_bytes, whole>},
    {"carve_slice_compute_wait_p50_seconds", "gauge", "Median of the slice's last thousand waits.",
     of_compute<&C::wait_p50_ns, api::seconds_of>},
    {"carve_slice_compute_wait_p99_seconds", "gauge", "99th percentile of the slice's last thousand waits.",
     of_compute<&C::wait_p99_ns, api::seconds_of>},
};

struct DeviceMetric {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const api::Device&);
};

constexpr DeviceMetric of_device[] = {
    {"carve_device_memory_native_bytes", "gauge", "Bytes of the device, as the driver reports them.",
     [](const api::Device& d) { return whole(d.native_bytes); }},
    {"carve_device_memory_usable_bytes", "gauge",
     "Bytes that can be granted to slices: native minus reserved.",
     [](const api::Device& d) { return whole(d.usable_bytes); }},
    {"carve_device_memory_granted_bytes", "gauge", "Bytes granted to slices.",
     [](const api::Device& d) { return whole(d.granted_bytes); }},
    {"carve_device_memory_used_bytes", "gauge", "Bytes in use by all processes, as the driver reports them.",
     [](const api::Device& d) { return whole(d.used_bytes); }},
    {"carve_device_healthy", "gauge", "1 if the device is healthy, else 0.",
     [](const api::Device& d) { return whole(d.health.state == HealthState::ok); }},
    {"carve_device_temperature_celsius", "gauge", "Temperature of the device, as the driver reports it.",
     [](const api::Device& d) { return reading(d.readings.temperature_celsius, 1); }},
    {"carve_device_power_watts", "gauge", "Power that the device draws, as the driver reports it.",
     [](const api::Device& d) { return reading(d.readings.power_milliwatts, 1000); }},
    {"carve_device_sm_clock_hertz", "gauge", "Clock of the multiprocessors, as the driver reports it.",
     [](const api::Device& d) {
       return d.readings.sm_clock_mhz ? whole(uint64_t{*d.readings.sm_clock_mhz} * 1'000'000) : "";
     }},
    {"carve_device_slices", "gauge", "Slices on the device.",
     [](const api::Device& d) { return whole(d.slices); }},
    {"carve_device_utilization_ratio", "gauge",
     "Part of the time in which a kernel ran, as the driver samples it.",
     [](const api::Device& d) { return api::ratio_of(d.utilization_percent * 100); }},
    {"carve_device_compute_granted_ratio", "gauge", "Sum of the shares granted on the device.",
     [](const api::Device& d) { return api::ratio_of(d.share_granted_bp); }},
    {"carve_device_compute_idle_ratio", "gauge", "Part of the last second in which nothing ran.",
     [](const api::Device& d) { return d.arbitration ? api::ratio_of(d.arbitration->idle_1s_bp) : ""; }},
    {"carve_device_compute_switches_total", "counter", "Switches from one slice to another.",
     [](const api::Device& d) { return d.arbitration ? whole(d.arbitration->switches) : ""; }},
    {"carve_device_compute_switch_seconds", "gauge", "Measured duration of one switch.",
     [](const api::Device& d) { return d.arbitration ? api::seconds_of(d.arbitration->switch_ns) : ""; }},
};

// Adds the labels of a slice's pod, if it has one.
void add_pod(api::Labels& labels, const api::Slice& slice) {
  if (!slice.holder || !slice.holder->pod) return;
  const PodContainer& pod = *slice.holder->pod;
  labels.insert(labels.end(),
                {{"namespace", pod.namespace_}, {"pod", pod.name}, {"container", pod.container}});
}

}  // namespace

std::string metrics_text(const NodeFigures& node) {
  api::Exposition out;
  out.family("carve_build_info", "gauge", "The agent's version, always 1.");
  out.sample({{"version", node.version}, {"simulated", node.simulated}}, "1");

  out.family("carve_node_enforcement", "gauge", "Enforcement of memory limits on this node, always 1.");
  out.sample({{"memory", std::string(text(node.memory_enforcement))}}, "1");

  out.family("carve_driver_samples_total", "counter",
             "Samples of each process's memory and utilization that the driver delivered.");
  out.sample({}, std::to_string(node.samples));
  out.family("carve_driver_sample_seconds", "gauge", "Duration of the last driver sample.");
  out.sample({}, api::seconds_of(node.sample_took_ns));

  out.family(
      "carve_agent_loop_longest_turn_seconds", "gauge",
      "Longest turn of the agent's loop since the agent started. During a turn no caller gets a response.");
  out.sample({}, api::seconds_of(node.longest_turn_ns));

  out.family("carve_device_info", "gauge", "Model and effective policy of the device, always 1.");
  for (const api::Device& d : node.devices)
    out.sample({{"device", std::to_string(d.index)},
                {"uuid", d.uuid},
                {"model", d.name},
                {"policy", std::string(text(d.policy.effective.value_or(d.policy.desired)))}},
               "1");
  for (const DeviceMetric& metric : of_device) {
    out.family(metric.name, metric.type, metric.help);
    for (const api::Device& d : node.devices)
      if (const std::string value = metric.value(d); !value.empty())
        out.sample({{"device", std::to_string(d.index)}, {"uuid", d.uuid}}, value);
  }

  out.family("carve_device_xid_total", "counter", "Errors (Xid) that the driver reported for the device.");
  for (const api::Device& d : node.devices)
    for (const XidCount& xid : d.xids)
      out.sample({{"device", whole(d.index)}, {"uuid", d.uuid}, {"xid", whole(xid.code)}}, whole(xid.count));
  out.family("carve_slice_xid_total", "counter", "Errors (Xid) that the slice's processes caused.");
  for (const api::Slice& s : node.slices)
    for (const XidCount& xid : s.xids) {
      api::Labels labels{{"slice", s.name}, {"xid", whole(xid.code)}};
      add_pod(labels, s);
      out.sample(labels, whole(xid.count));
    }

  const auto each_part = [&](const auto& act) {
    for (const api::Slice& s : node.slices)
      for (const api::SlicePart& p : s.parts) {
        api::Labels labels{{"slice", s.name}, {"device", std::to_string(p.index)}, {"uuid", p.uuid}};
        add_pod(labels, s);
        act(Part{s, p}, labels);
      }
  };
  out.family("carve_slice_info", "gauge", "Isolation, policy and class of the slice, always 1.");
  each_part([&](const Part& p, api::Labels labels) {
    labels.insert(labels.end(), {{"policy", std::string(text(p.slice.policy))},
                                 {"class", std::string(text(p.slice.latency_class))},
                                 {"isolation", std::string(text(p.slice.isolation))},
                                 {"compute", std::string(text(p.slice.enforcement.compute.level))},
                                 {"owner", std::to_string(p.slice.owner_uid)}});
    out.sample(labels, "1");
  });
  for (const PartMetric& metric : of_part) {
    out.family(metric.name, metric.type, metric.help);
    each_part([&](const Part& p, const api::Labels& labels) {
      if (const std::string value = metric.value(p); !value.empty()) out.sample(labels, value);
    });
  }
  return out.text();
}

}  // namespace carve::node
