#include "node/slice/node_state.h"

#include <unistd.h>

#include <algorithm>

#include "core/escaped.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::node {

const NodeDevice* NodeState::device(const Uuid& uuid) const {
  const auto found =
      std::ranges::find(devices, uuid, [](const NodeDevice& d) -> const Uuid& { return d.device.uuid; });
  return found == devices.end() ? nullptr : &*found;
}

Bytes NodeState::context_charged(const Uuid& uuid) const {
  const NodeDevice* on = device(uuid);
  return on != nullptr && settings.contexts_in_slice ? on->context : Bytes{};
}

// Names of programs and files are from outside.
void NodeState::event(const std::string& slice, std::string text) {
  text = escaped(text);
  os::log::info("{}{}{}", slice, slice.empty() ? "" : ": ", text);
  std::optional<uint32_t> owner;
  if (const ledger::UsageRecord* record = books.find(slice)) owner = record->slice.owner;
  if (const LiveSlice* live = slices.find(slice)) owner = live->granted().owner;
  events.add({os::utc_ns(), slice, std::move(text), owner});
}

bool NodeState::caused_event(LiveSlice& slice, std::string text) {
  const auto left_out = slice.event_budget.take(os::monotonic_ns());
  if (!left_out) return false;
  if (*left_out != 0) text += fmt::format(" ({} earlier events of this slice were left out)", *left_out);
  event(slice.name(), std::move(text));
  return true;
}

AttachedSpan attached_span(const os::ProcessId& process) {
  static const int64_t tick_ns = os::second / sysconf(_SC_CLK_TCK);
  const int64_t now = os::utc_ns();
  const int64_t boot = now - os::read_clock(CLOCK_BOOTTIME);
  return {static_cast<uint64_t>((boot + static_cast<int64_t>(process.start) * tick_ns) / 1000),
          static_cast<uint64_t>(now / 1000)};
}

Policies::Holders NodeState::policy_holders() const {
  return [this](const Uuid& uuid) {
    std::vector<std::string> names;
    if (const auto balance = ledger().balances().find(uuid); balance != ledger().balances().end())
      for (const auto& [id, part] : balance->second.held)
        names.push_back(ledger().living().at(id).slice.name);
    return names;
  };
}

std::vector<std::string> NodeState::memory_unit_holders() const {
  std::vector<std::string> names;
  for (const auto& [id, slice] : slices)
    if (slice->granted().memory_units.count != 0) names.push_back(slice->name());
  return names;
}

Share NodeState::most_shares() const {
  return settings.overcommit_compute ? ledger::unlimited_shares : whole_device;
}

void arbitrate(NodeState& node, const Slice& changed) {
  for (const SlicePart& on : changed.parts) {
    const NodeDevice* device = node.device(on.device);
    if (device == nullptr) continue;
    std::vector<ComputePart> parts;
    for (const auto& [id, slice] : node.slices) {
      const auto& of_slice = slice->granted().parts;
      const auto part = std::ranges::find(of_slice, on.device, &SlicePart::device);
      if (part == of_slice.end() || slice->ended || !slice->control || !slice->report.page) continue;
      ComputePart& added = parts.emplace_back();
      added.slice = id;
      added.granted = &slice->granted();
      added.part = static_cast<unsigned>(part - of_slice.begin());
      added.control = &*slice->control;
      added.work = slice->report.page->work.process;
      for (const auto& [process, attached] : slice->attached) added.slots.push_back(attached.slot);
    }
    for (const uint64_t id : node.compute.arbitrate(device->device, parts))
      node.event(
          node.slices.find(id)->name(),
          fmt::format("left without an enforced share on device {}, because the arbiter has no room for "
                      "another client",
                      device->device.index));
  }
}

}  // namespace carve::node
