// Connects the agent with the arbiters. A device has an arbiter if a share of some slice on it is enforced.
// The arbiter then schedules every slice of the device; a slice without an enforced share gets the time that
// is left.
#include <algorithm>

#include "node/agent/agent.h"
#include "os/clock.h"

namespace carve::node {
namespace {

bool enforced(const Slice& granted) { return granted.isolation == Isolation::memory_and_compute; }

share::Entitlement entitlement_of(const LiveSlice& slice, const SlicePart& part, size_t index) {
  const Slice& granted = slice.record.slice;
  // A slice without an enforced share has no entitlement: it gets the rest, by a small weight.
  if (!enforced(granted)) return {.policy = Policy::native_burst_share};
  share::Entitlement entitlement{granted.policy, granted.latency, part.share, share::Gang::none};
  if (granted.parts.size() > 1) entitlement.gang = index == 0 ? share::Gang::leads : share::Gang::follows;
  return entitlement;
}

std::vector<unsigned> slots_of(const LiveSlice& slice) {
  std::vector<unsigned> slots;
  for (const auto& [process, attached] : slice.attached) slots.push_back(attached.slot);
  return slots;
}

}  // namespace

Arbiter* Agent::arbiter(const Uuid& uuid) const {
  const auto found = arbiters_.find(uuid);
  return found == arbiters_.end() ? nullptr : found->second.get();
}

void Agent::for_arbiters_of(const LiveSlice& slice, const std::function<void(Arbiter&)>& call) {
  for (const SlicePart& part : slice.record.slice.parts)
    if (Arbiter* a = arbiter(part.device)) call(*a);
}

// Called for a new slice and after a change of its terms.
void Agent::compute_changed(LiveSlice& slice) {
  for (const SlicePart& part : slice.record.slice.parts) arbitrate(part.device);
}

void Agent::compute_ended(LiveSlice& slice) {
  for_arbiters_of(slice, [&](Arbiter& a) { a.remove(slice.record.id); });
  for (const SlicePart& part : slice.record.slice.parts) arbitrate(part.device);
}

// Starts the device's arbiter if some share on the device is enforced, and ends it if none is.
void Agent::arbitrate(const Uuid& uuid) {
  struct Part {
    LiveSlice* slice;
    size_t index;
  };
  std::vector<Part> parts;
  bool any = false;
  for (const auto& [id, slice] : slices_) {
    const auto& of_slice = slice->record.slice.parts;
    const auto part = std::ranges::find(of_slice, uuid, &SlicePart::device);
    if (part == of_slice.end() || slice->ended || !slice->control || !slice->report.page) continue;
    parts.push_back({slice.get(), static_cast<size_t>(part - of_slice.begin())});
    any |= enforced(slice->record.slice);
  }
  if (!any) {
    arbiters_.erase(uuid);
    return;
  }
  const NodeDevice* d = device(uuid);
  if (d == nullptr || d->device.index >= shm::max_devices) return;
  auto& made = arbiters_[uuid];
  if (made == nullptr)
    made = std::make_unique<Arbiter>(d->device.index, uuid, heartbeat_->arbiter[d->device.index],
                                     share::Tuning{});
  for (const auto& [slice, index] : parts) {
    const share::Entitlement entitlement = entitlement_of(*slice, slice->record.slice.parts[index], index);
    if (made->change(slice->record.id, entitlement)) continue;
    const auto& work = slice->report.page->work.process;
    ArbiterClient who{slice->record.id, entitlement, static_cast<unsigned>(index),
                      &*slice->control, work,        nullptr};
    if (entitlement.gang != share::Gang::none) {
      if (slice->gang == nullptr) slice->gang = std::make_shared<GangState>();
      who.gang = slice->gang;
      if (entitlement.gang == share::Gang::leads)
        who.gang->leader = made.get();
      else
        who.gang->followers.push_back(made.get());
    }
    if (!made->add(who, slots_of(*slice)))
      event(slice->name(), fmt::format("left without an enforced share on device {}, because the arbiter has "
                                       "no room for another client",
                                       d->device.index));
  }
}

std::optional<DeviceCompute> Agent::compute(const Uuid& uuid) const {
  if (Arbiter* a = arbiter(uuid)) return a->view();
  return std::nullopt;
}

std::string Agent::metering() const {
  unsigned by_events = 0;
  for (const auto& [id, slice] : slices_)
    for (const auto& [process, attached] : slice->attached)
      by_events += slice->report.page && slice->report.page->work.process[attached.slot].fence_kind.load() ==
                                             static_cast<uint32_t>(shm::FenceKind::events);
  std::string out =
      "time in which a slice had work on the device: the device itself writes the end of the work "
      "(cuStreamWriteValue64), or the program's own synchronisation reports it; compared twice a second with "
      "what NVML reports for each process";
  if (by_events != 0)
    out += fmt::format("; for {} process{} the driver cannot write, and CUDA events are polled instead",
                       by_events, by_events == 1 ? "" : "es");
  return out;
}

std::vector<TraceSpan> Agent::trace(int64_t since) const {
  std::vector<TraceSpan> all;
  for (const auto& [uuid, arbiter] : arbiters_) {
    const std::vector<TraceSpan> spans = arbiter->trace(since);
    all.insert(all.end(), spans.begin(), spans.end());
  }
  std::ranges::sort(all, {}, &TraceSpan::begin_ns);
  return all;
}

}  // namespace carve::node
