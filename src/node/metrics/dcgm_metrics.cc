#include "node/metrics/dcgm_metrics.h"

#include <algorithm>
#include <optional>

namespace carve::node {
namespace {

using api::metric;

constexpr uint64_t mib = 1 << 20;

template <class Number>
std::string number(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "";
}

// A series of a device. The value is empty if the driver does not report it.
struct DeviceSeries {
  const api::MetricFamily& family;
  std::string (*value)(const api::Device&);
  // The value of a slice that has a part of the device; null if the reading cannot be divided.
  std::string (*of_slice)(const api::SlicePart&);
};

std::string free_mib(const api::Device& d) {
  const uint64_t taken = d.readings.memory_reserved_bytes.value_or(0) + d.used_bytes;
  return std::to_string((d.native_bytes - std::min(d.native_bytes, taken)) / mib);
}

constexpr DeviceSeries series[] = {
    {metric("DCGM_FI_DEV_GPU_UTIL"),
     [](const api::Device& d) { return std::to_string(d.utilization_percent); },
     [](const api::SlicePart& p) { return std::to_string(p.utilization_percent); }},
    {metric("DCGM_FI_DEV_MEM_COPY_UTIL"),
     [](const api::Device& d) { return number(d.readings.memory_busy_percent); }, nullptr},
    {metric("DCGM_FI_DEV_FB_USED"), [](const api::Device& d) { return std::to_string(d.used_bytes / mib); },
     [](const api::SlicePart& p) { return std::to_string(p.used_bytes / mib); }},
    {metric("DCGM_FI_DEV_FB_FREE"), free_mib,
     [](const api::SlicePart& p) {
       return std::to_string((p.quota_bytes - std::min(p.quota_bytes, p.charged_bytes)) / mib);
     }},
    {metric("DCGM_FI_DEV_FB_RESERVED"),
     [](const api::Device& d) {
       const auto bytes = d.readings.memory_reserved_bytes;
       return bytes ? std::to_string(*bytes / mib) : "";
     },
     nullptr},
    {metric("DCGM_FI_DEV_GPU_TEMP"),
     [](const api::Device& d) { return number(d.readings.temperature_celsius); }, nullptr},
    {metric("DCGM_FI_DEV_POWER_USAGE"),
     [](const api::Device& d) {
       const auto milliwatts = d.readings.power_milliwatts;
       return milliwatts ? fmt::format("{}.{:03}", *milliwatts / 1000, *milliwatts % 1000) : "";
     },
     nullptr},
    {metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
     [](const api::Device& d) { return number(d.readings.energy_millijoules); }, nullptr},
    {metric("DCGM_FI_DEV_SM_CLOCK"), [](const api::Device& d) { return number(d.readings.sm_clock_mhz); },
     nullptr},
    {metric("DCGM_FI_DEV_MEM_CLOCK"),
     [](const api::Device& d) { return number(d.readings.memory_clock_mhz); }, nullptr},
    {metric("DCGM_FI_DEV_XID_ERRORS"), [](const api::Device& d) { return std::to_string(d.last_xid); },
     nullptr},
};

const PodContainer* pod_holding(const api::Slice& slice) {
  return slice.holder && slice.holder->pod ? &*slice.holder->pod : nullptr;
}

api::LabelText dcgm_labels(const NodeFigures& node, const api::Device& d, const PodContainer* pod) {
  const std::string index = std::to_string(d.index);
  const std::string values[] = {index,
                                d.uuid,
                                "nvidia" + index,
                                d.name,
                                node.host_name,
                                d.pci_id,
                                pod != nullptr ? pod->namespace_ : "",
                                pod != nullptr ? pod->name : "",
                                pod != nullptr ? pod->container : ""};
  return {api::metric_labels::dcgm, values};
}

struct DcgmDevice {
  const api::Device* device;
  api::LabelText labels;
};
struct DcgmPart {
  const api::SlicePart* part;
  api::LabelText labels;
};

}  // namespace

void write_dcgm_metrics(api::Exposition& out, const NodeFigures& node) {
  std::vector<DcgmDevice> devices;
  std::vector<DcgmPart> parts;
  for (const api::Device& d : node.devices) {
    const PodContainer* holder = nullptr;
    for (const api::Slice& slice : node.slices) {
      const auto part = std::ranges::find(slice.parts, d.uuid, &api::SlicePart::uuid);
      const PodContainer* const pod = pod_holding(slice);
      if (part == slice.parts.end() || pod == nullptr) continue;
      if (slice.exclusive)
        holder = pod;
      else
        parts.push_back({&*part, dcgm_labels(node, d, pod)});
    }
    devices.push_back({&d, dcgm_labels(node, d, holder)});
  }
  for (const DeviceSeries& one : series) {
    out.family(one.family);
    for (const DcgmDevice& d : devices)
      if (const std::string value = one.value(*d.device); !value.empty()) out.sample(d.labels, value);
    for (const DcgmPart& p : parts)
      if (one.of_slice != nullptr) out.sample(p.labels, one.of_slice(*p.part));
  }
}

}  // namespace carve::node
