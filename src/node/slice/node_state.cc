#include "node/slice/node_state.h"

#include <unistd.h>

#include <algorithm>

#include "core/escaped.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/user.h"

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

std::optional<uint32_t> NodeState::owner_of(const std::string& slice) const {
  if (const LiveSlice* live = slices.find(slice)) return live->granted().owner;
  if (const ledger::UsageRecord* record = books.find(slice)) return record->slice.owner;
  return std::nullopt;
}

uint64_t NodeState::id_of(const std::string& slice) const {
  if (const LiveSlice* live = slices.find(slice)) return live->id();
  const ledger::UsageRecord* record = books.find(slice);
  return record == nullptr ? 0 : record->id;
}

// Names of programs and files come from users.
void NodeState::add_event(const EventSubject& slice, std::string text, const std::optional<Cause>& cause) {
  text = escaped(text);
  if (!cause || os::log::may_write(*cause))
    os::log::info("{}{}{}", slice.name, slice.name.empty() ? "" : ": ", text);
  events.add({.utc_ns = os::utc_ns(),
              .slice = slice.name,
              .text = std::move(text),
              .owner = slice.owner,
              .slice_id = slice.id});
}

void NodeState::event(const std::string& slice, std::string text) {
  const auto owner = owner_of(slice);
  add_event({.name = slice, .id = id_of(slice), .owner = owner}, std::move(text),
            owner ? std::optional(os::cause_of_user(*owner)) : std::nullopt);
}

// Root's pods must not use up root's own log quota.
bool NodeState::caused_event(LiveSlice& slice, std::string text) {
  const auto left_out = slice.event_budget.take(os::monotonic_ns());
  if (!left_out) return false;
  if (*left_out != 0) text += fmt::format(" ({} earlier events of this slice were left out)", *left_out);
  Cause cause = os::cause_of_user(slice.granted().owner);
  if (cause.has_reserve) cause = {.who = "slice " + slice.name()};
  add_event({.name = slice.name(), .id = slice.id(), .owner = slice.granted().owner}, std::move(text), cause);
  return true;
}

void NodeState::outside_event(const EventSubject& slice, std::string text) {
  const auto left_out = outside_budget.take(os::monotonic_ns());
  if (!left_out) return;
  if (*left_out != 0) text += fmt::format(" ({} earlier events of this kind were left out)", *left_out);
  add_event(slice, std::move(text), Cause{.who = "programs in no slice"});
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
      node.event(node.slices.find(id)->name(),
                 fmt::format(
                     "its share of device {} is not enforced, because the arbiter cannot take another client",
                     device->device.index));
  }
}

}  // namespace carve::node
