#include "kubernetes/node/rules/report_events.h"

#include <algorithm>

#include "core/xid.h"

namespace carve::kubernetes::node {
namespace {

constexpr const char* watch_device = "WatchDevice";
constexpr const char* watch_slice = "WatchSlice";
constexpr const char* apply_setting = "ApplySetting";

std::string times(uint64_t count) { return count == 1 ? "" : fmt::format(", {} times", count); }

std::string device_text(const api::Device& device) {
  return fmt::format("device {} ({}, {})", device.index, device.uuid, device.name);
}

const char* reason_of(ViolationKind kind) {
  switch (kind) {
    case ViolationKind::over_quota: return "CarveOverQuota";
    case ViolationKind::bypass: return "CarveBypass";
    case ViolationKind::foreign_process: return "CarveRefused";
    case ViolationKind::unreadable_process: return "CarveUnreadableProcess";
    case ViolationKind::false_report: return "CarveFalseReport";
  }
  return "CarveBypass";
}

}  // namespace

uint64_t ReportEvents::risen(const std::string& object, const std::string& counter, uint64_t count) {
  uint64_t& known = counts_[object][counter];
  const uint64_t before = count < known ? 0 : known;
  known = count;
  return count - before;
}

void ReportEvents::of_device(const api::Device& device, const AboutObject& node,
                             std::vector<EventNote>& out) {
  for (const XidCount& xid : device.xids)
    if (const uint64_t more = risen(device.uuid, std::to_string(xid.code), xid.count); more != 0)
      out.push_back({.about = node,
                     .severity = Severity::warning,
                     .reason = "CarveXid",
                     .action = watch_device,
                     .note = fmt::format("{}: the driver reported {}{}", device_text(device),
                                         xid_text(xid.code), times(more))});
  HealthState& before = health_.try_emplace(device.uuid, HealthState::ok).first->second;
  if (before == device.health.state) return;
  before = device.health.state;
  if (before == HealthState::ok)
    out.push_back({.about = node,
                   .reason = "CarveDeviceRecovered",
                   .action = watch_device,
                   .note = fmt::format("{} serves slices again", device_text(device))});
  else
    out.push_back(
        {.about = node,
         .severity = Severity::warning,
         .reason = before == HealthState::xid ? "CarveXid" : "CarveDeviceLost",
         .action = watch_device,
         .note = fmt::format("{} serves no new slice: {}", device_text(device), device.health.reason)});
}

void ReportEvents::of_slice(const api::Slice& slice, std::vector<EventNote>& out) {
  if (!slice.holder || !slice.holder->pod) return;
  const PodContainer& pod = *slice.holder->pod;
  const AboutObject about{.kind = "Pod", .name_space = pod.namespace_, .name = pod.name, .uid = pod.uid};
  const auto note = [&](const char* reason, std::string message) {
    out.push_back({.about = about,
                   .severity = Severity::warning,
                   .reason = reason,
                   .action = watch_slice,
                   .note = fmt::format("container {}: {}", pod.container, message)});
  };
  for (const XidCount& xid : slice.xids)
    if (const uint64_t more = risen(slice.name, std::to_string(xid.code), xid.count); more != 0)
      note("CarveXid", fmt::format("its processes caused {}{}", xid_text(xid.code), times(more)));
  for (const Violation& found : slice.violations)
    if (const uint64_t more = risen(slice.name, std::string(text(found.kind)), found.count); more != 0)
      note(reason_of(found.kind), found.text + times(more));
}

std::vector<EventNote> ReportEvents::of_report(const api::AgentReport& report, const AboutObject& node) {
  std::erase_if(counts_, [&](const auto& counted) {
    return std::ranges::find(report.slices, counted.first, &api::Slice::name) == report.slices.end() &&
           std::ranges::find(report.devices, counted.first, &api::Device::uuid) == report.devices.end();
  });
  std::vector<EventNote> out;
  for (const api::Device& device : report.devices) of_device(device, node, out);
  for (const api::Slice& slice : report.slices) of_slice(slice, out);
  return out;
}

std::vector<EventNote> ReportEvents::of_conditions(const std::vector<Condition>& conditions,
                                                   const AboutObject& node) {
  std::vector<EventNote> out;
  for (const Condition& condition : conditions) {
    const bool is_ready = condition.type == ready_condition;
    const bool is_trouble =
        is_ready ? !condition.is_true || condition.reason == no_cdi_reason : condition.is_true;
    std::string& reported = messages_[condition.type];
    if (reported == (is_trouble ? condition.message : "")) continue;
    reported = is_trouble ? condition.message : "";
    if (!is_trouble) continue;
    out.push_back({.about = node,
                   .severity = is_ready ? Severity::warning : Severity::normal,
                   .reason = !is_ready                               ? condition.type
                             : condition.reason.starts_with("Carve") ? condition.reason
                                                                     : "Carve" + condition.reason,
                   .action = apply_setting,
                   .note = condition.message});
  }
  return out;
}

}  // namespace carve::kubernetes::node
