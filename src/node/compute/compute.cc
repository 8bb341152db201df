#include "node/compute/compute.h"

#include <algorithm>
#include <system_error>

namespace carve::node {

bool is_share_enforced(const Slice& granted) { return granted.isolation == Isolation::memory_and_compute; }

share::Entitlement entitlement_of(const Slice& granted, size_t part) {
  if (!is_share_enforced(granted))
    return {.policy = Policy::native_burst_share,
            .best_effort = granted.policy != Policy::native_burst_share};
  share::Entitlement out{granted.policy, granted.latency, granted.parts[part].share, share::Gang::none,
                         false};
  if (granted.parts.size() > 1) out.gang = part == 0 ? share::Gang::leads : share::Gang::follows;
  return out;
}

template <class Call>
void Compute::for_arbiters_of(const Slice& granted, Call call) {
  for (const SlicePart& part : granted.parts)
    if (const auto found = arbiters_.find(part.device); found != arbiters_.end()) call(*found->second);
}

ArbiterClient Compute::client_of(const ComputePart& part, Arbiter& arbiter) {
  ArbiterClient client{.slice = part.slice,
                       .entitlement = entitlement_of(*part.granted, part.part),
                       .device = part.part,
                       .control = part.control,
                       .work = part.work,
                       .gang = nullptr};
  if (client.entitlement.gang == share::Gang::none) return client;
  std::shared_ptr<GangState>& gang = gangs_[part.slice];
  if (gang == nullptr) gang = std::make_shared<GangState>();
  client.gang = gang;
  if (client.entitlement.gang == share::Gang::leads)
    gang->leader = &arbiter;
  else
    gang->followers.push_back(&arbiter);
  return client;
}

std::vector<uint64_t> Compute::arbitrate(const Device& device, std::span<const ComputePart> parts) {
  std::vector<uint64_t> without_room;
  if (std::ranges::none_of(parts, [](const ComputePart& p) { return is_share_enforced(*p.granted); })) {
    arbiters_.erase(device.uuid);
    return without_room;
  }
  if (device.index >= shm::max_devices) return without_room;
  auto& arbiter = arbiters_[device.uuid];
  if (arbiter == nullptr) {
    try {
      arbiter = std::make_unique<Arbiter>(device.index, device.uuid, heartbeat_.arbiter[device.index],
                                          share::Tuning{});
    } catch (const std::system_error&) {  // The system cannot create its thread.
      arbiters_.erase(device.uuid);
      for (const ComputePart& part : parts) without_room.push_back(part.slice);
      return without_room;
    }
  }
  for (const ComputePart& part : parts)
    if (!arbiter->change(part.slice, entitlement_of(*part.granted, part.part)) &&
        !arbiter->add(client_of(part, *arbiter), part.slots))
      without_room.push_back(part.slice);
  return without_room;
}

void Compute::remove(uint64_t slice, const Slice& granted) {
  for_arbiters_of(granted, [&](Arbiter& a) { a.remove(slice); });
  gangs_.erase(slice);
}

void Compute::add_process(uint64_t slice, const Slice& granted, unsigned slot) {
  for_arbiters_of(granted, [&](Arbiter& a) { a.add_process(slice, slot); });
}

void Compute::remove_process(uint64_t slice, const Slice& granted, unsigned slot) {
  for_arbiters_of(granted, [&](Arbiter& a) { a.remove_process(slice, slot); });
}

void Compute::sample() {
  for (const auto& [uuid, arbiter] : arbiters_) arbiter->sample();
}

void Compute::support(const Uuid& device, uint64_t slice, const WorkShown& work) {
  if (const auto found = arbiters_.find(device); found != arbiters_.end())
    found->second->support(slice, work);
}

std::optional<DeviceCompute> Compute::figures(const Uuid& device) const {
  const auto found = arbiters_.find(device);
  return found == arbiters_.end() ? std::nullopt : std::optional(found->second->view());
}

std::vector<TraceSpan> Compute::trace(int64_t since) const {
  std::vector<TraceSpan> all;
  for (const auto& [uuid, arbiter] : arbiters_) {
    const std::vector<TraceSpan> spans = arbiter->trace(since);
    all.insert(all.end(), spans.begin(), spans.end());
  }
  std::ranges::sort(all, {}, &TraceSpan::begin_ns);
  return all;
}

}  // namespace carve::node
