#include "node/serve/metrics.h"

namespace carve::node {
namespace {

struct Part {
  const api::Slice& slice;
  const api::SlicePart& part;
};

// One row per metric: what it is called and what it says of a part, or nothing.
struct PartMetric {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const Part&);
};

// Of the arbiter's numbers, where there are any.
template <auto field, auto written>
std::string of_compute(const Part& p) {
  return p.part.compute ? written((*p.part.compute).*field) : "";
}
std::string whole(uint64_t count) { return std::to_string(count); }
using C = api::PartCompute;

constexpr PartMetric of_part[] = {
    {"carve_slice_memory_quota_bytes", "gauge", "Memory that the slice may hold on the device.",
     [](const Part& p) { return whole(p.part.quota_bytes); }},
    {"carve_slice_memory_charged_bytes", "gauge", "Memory that counts against the quota.",
     [](const Part& p) { return whole(p.part.charged_bytes); }},
    {"carve_slice_memory_used_bytes", "gauge", "Memory that the driver says the slice's processes hold.",
     [](const Part& p) { return whole(p.part.used_bytes); }},
    {"carve_slice_memory_peak_bytes", "gauge", "The most that was ever charged.",
     [](const Part& p) { return whole(p.part.peak_bytes); }},
    {"carve_slice_memory_spilled_bytes", "gauge", "Memory beyond the quota that lives on the host.",
     [](const Part& p) { return p.part.spill_bytes == 0 ? "" : whole(p.part.spilled_bytes); }},
    {"carve_slice_compute_share_ratio", "gauge", "Share of the device's compute that was granted.",
     [](const Part& p) { return p.part.share_bp == 0 ? "" : ratio_of(p.part.share_bp); }},
    {"carve_slice_compute_achieved_ratio", "gauge", "Share of the device's compute had in the last second.",
     of_compute<&C::achieved_1s_bp, [](uint64_t v) { return ratio_of(v); }>},
    {"carve_slice_compute_busy_seconds_total", "counter",
     "Time charged to the slice: its work and the changes over to it.", of_compute<&C::busy_ns, seconds_of>},
    {"carve_slice_compute_waiting_seconds_total", "counter",
     "Time in which it had work and another slice had the device.", of_compute<&C::waiting_ns, seconds_of>},
    {"carve_slice_compute_throttled_seconds_total", "counter",
     "Time in which it had work and its own share held it back.", of_compute<&C::throttled_ns, seconds_of>},
    {"carve_slice_compute_burst_seconds_total", "counter", "Time charged beyond its share.",
     of_compute<&C::burst_ns, seconds_of>},
    {"carve_slice_compute_waits_total", "counter", "Times that it had to wait for the device.",
     of_compute<&C::waits, whole>},
    {"carve_slice_compute_leases_total", "counter", "Leases that it was granted.",
     of_compute<&C::leases, whole>},
    {"carve_slice_compute_overruns_total", "counter", "Times that its work did not end when it should have.",
     of_compute<&C::overruns, whole>},
    {"carve_slice_copied_to_device_bytes_total", "counter", "Bytes that its copies moved to devices.",
     of_compute<&C::copied_to_device_bytes, whole>},
    {"carve_slice_copied_to_host_bytes_total", "counter", "Bytes that its copies moved to the host.",
     of_compute<&C::copied_to_host_bytes, whole>},
    {"carve_slice_copied_on_device_bytes_total", "counter", "Bytes that its copies moved inside devices.",
     of_compute<&C::copied_on_device_bytes, whole>},
    {"carve_slice_compute_wait_p50_seconds", "gauge", "Median of its last thousand waits.",
     of_compute<&C::wait_p50_ns, seconds_of>},
    {"carve_slice_compute_wait_p99_seconds", "gauge", "99th percentile of its last thousand waits.",
     of_compute<&C::wait_p99_ns, seconds_of>},
};

struct DeviceMetric {
  const char* name;
  const char* type;
  const char* help;
  std::string (*value)(const api::Device&);
};

constexpr DeviceMetric of_device[] = {
    {"carve_device_memory_native_bytes", "gauge", "Memory that the driver reports in all.",
     [](const api::Device& d) { return whole(d.native_bytes); }},
    {"carve_device_memory_usable_bytes", "gauge", "Memory that quotas count against.",
     [](const api::Device& d) { return whole(d.usable_bytes); }},
    {"carve_device_memory_granted_bytes", "gauge", "Memory held by slices.",
     [](const api::Device& d) { return whole(d.granted_bytes); }},
    {"carve_device_memory_used_bytes", "gauge", "Memory in use, by whomever, as the driver says.",
     [](const api::Device& d) { return whole(d.used_bytes); }},
    {"carve_device_healthy", "gauge", "1 where nothing is wrong with it.",
     [](const api::Device& d) { return whole(d.health == "ok"); }},
    {"carve_device_slices", "gauge", "Slices on it.", [](const api::Device& d) { return whole(d.slices); }},
    {"carve_device_utilization_ratio", "gauge", "Time in which a kernel ran, as the driver samples it.",
     [](const api::Device& d) { return ratio_of(d.utilization_percent * 100); }},
    {"carve_device_compute_granted_ratio", "gauge", "Sum of the shares that were granted.",
     [](const api::Device& d) { return ratio_of(d.share_granted_bp); }},
    {"carve_device_compute_idle_ratio", "gauge", "Part of the last second in which nothing ran.",
     [](const api::Device& d) { return d.arbitration ? ratio_of(d.arbitration->idle_1s_bp) : ""; }},
    {"carve_device_compute_switches_total", "counter", "Changes from one slice to another.",
     [](const api::Device& d) { return d.arbitration ? whole(d.arbitration->switches) : ""; }},
    {"carve_device_compute_switch_seconds", "gauge", "What one such change costs.",
     [](const api::Device& d) { return d.arbitration ? seconds_of(d.arbitration->switch_ns) : ""; }},
};

}  // namespace

std::string metrics_text(const ViewContext& look) {
  const Agent& agent = look.agent();
  Exposition out;
  out.family("carve_build_info", "gauge", "The agent's version, always 1.");
  out.sample({{"version", CARVE_VERSION}, {"simulated", agent.settings().paths.sim_spec}}, "1");

  out.family("carve_driver_samples_total", "counter",
             "Times that the driver told what each process holds and had of its device.");
  out.sample({}, std::to_string(agent.samples()));
  out.family("carve_driver_sample_seconds", "gauge", "What the last of these took it.");
  out.sample({}, seconds_of(static_cast<uint64_t>(agent.sample_took_ns())));

  std::vector<api::Device> devices;
  for (const NodeDevice& d : agent.devices()) devices.push_back(view(look, d));
  out.family("carve_device_info", "gauge", "What the device is and which policy is effective, always 1.");
  for (const api::Device& d : devices)
    out.sample({{"device", std::to_string(d.index)},
                {"uuid", d.uuid},
                {"model", d.name},
                {"policy", d.policy.effective}},
               "1");
  for (const DeviceMetric& metric : of_device) {
    out.family(metric.name, metric.type, metric.help);
    for (const api::Device& d : devices)
      if (const std::string value = metric.value(d); !value.empty())
        out.sample({{"device", std::to_string(d.index)}, {"uuid", d.uuid}}, value);
  }

  std::vector<api::Slice> slices;
  for (const auto& [id, slice] : agent.slices())
    if (look.may_see(slice->record)) slices.push_back(view(look, *slice, false));
  const auto each_part = [&](const auto& act) {
    for (const api::Slice& s : slices)
      for (const api::SlicePart& p : s.parts)
        act(Part{s, p}, Labels{{"slice", s.name}, {"device", std::to_string(p.index)}, {"uuid", p.uuid}});
  };
  out.family("carve_slice_info", "gauge", "How the slice is isolated and served, always 1.");
  each_part([&](const Part& p, Labels labels) {
    labels.insert(labels.end(), {{"policy", p.slice.policy},
                                 {"class", p.slice.latency ? "latency" : "batch"},
                                 {"isolation", p.slice.isolation},
                                 {"compute", p.slice.compute},
                                 {"owner", std::to_string(p.slice.owner_uid)}});
    out.sample(labels, "1");
  });
  for (const PartMetric& metric : of_part) {
    out.family(metric.name, metric.type, metric.help);
    each_part([&](const Part& p, const Labels& labels) {
      if (const std::string value = metric.value(p); !value.empty()) out.sample(labels, value);
    });
  }
  return out.text();
}

}  // namespace carve::node
