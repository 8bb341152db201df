#include "controller/history/history_samples.h"

namespace carve::controller {
namespace {

void set_value(HistorySample& sample, SliceMetric metric, uint64_t value) {
  sample.values[static_cast<size_t>(metric)] = value;
}
void set_value(HistorySample& sample, DeviceMetric metric, uint64_t value) {
  sample.values[static_cast<size_t>(metric)] = value;
}

HistorySample sample_of(const std::string& node, const api::Slice& slice, const api::SlicePart& part) {
  HistorySample out{.series = {.kind = HistoryKind::slice,
                               .node = node,
                               .name = slice.name,
                               .created_ns = static_cast<int64_t>(slice.created_ns),
                               .device = part.uuid,
                               .index = part.index,
                               .owner_uid = slice.owner_uid,
                               .account = slice.account},
                    .values = {},
                    .counters = {}};
  set_value(out, SliceMetric::charged_bytes, part.charged_bytes);
  set_value(out, SliceMetric::used_bytes, part.used_bytes);
  set_value(out, SliceMetric::quota_bytes, part.quota_bytes);
  set_value(out, SliceMetric::share_bp, part.share_bp);
  set_value(out, SliceMetric::utilization_percent, part.utilization_percent);
  if (part.compute)
    out.counters = {.as_of_ns = part.compute->as_of_ns,
                    .busy_ns = part.compute->busy_ns,
                    .waiting_ns = part.compute->waiting_ns,
                    .throttled_ns = part.compute->throttled_ns};
  return out;
}

HistorySample sample_of(const std::string& node, const api::Device& device) {
  HistorySample out{
      .series = {.kind = HistoryKind::device, .node = node, .device = device.uuid, .index = device.index},
      .values = {},
      .counters = {}};
  set_value(out, DeviceMetric::used_bytes, device.used_bytes);
  set_value(out, DeviceMetric::granted_bytes, device.granted_bytes);
  set_value(out, DeviceMetric::utilization_percent, device.utilization_percent);
  if (device.readings.power_milliwatts)
    set_value(out, DeviceMetric::power_milliwatts, *device.readings.power_milliwatts);
  return out;
}

}  // namespace

std::vector<HistorySample> history_samples(const std::string& node, const api::AgentReport& report) {
  std::vector<HistorySample> out;
  for (const api::Device& device : report.devices) out.push_back(sample_of(node, device));
  for (const api::Slice& slice : report.slices)
    for (const api::SlicePart& part : slice.parts) out.push_back(sample_of(node, slice, part));
  return out;
}

}  // namespace carve::controller
