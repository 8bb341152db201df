#include "node/slice/slices.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::node {

LiveSlice& Slices::add(std::unique_ptr<LiveSlice> slice) {
  invariant(slice->id() != 0, "a live slice has a usage record");
  const auto [at, is_new] = by_id_.emplace(slice->id(), std::move(slice));
  invariant(is_new, "an id is given out once");
  return *at->second;
}

void Slices::erase(uint64_t id) { by_id_.erase(id); }

LiveSlice* Slices::find(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.get();
}

LiveSlice* Slices::find(const std::string& name) const {
  for (const auto& [id, slice] : by_id_)
    if (slice->name() == name) return slice.get();
  return nullptr;
}

LiveSlice* Slices::find(const AttachPoint& point) const {
  for (const auto& [id, slice] : by_id_)
    if (slice->attach_point() == point) return slice.get();
  return nullptr;
}

size_t Slices::claims_of(const std::string& pod_uid) const {
  size_t out = 0;
  for (const auto& [id, slice] : by_id_)
    if (std::ranges::find(slice->claim_pods, pod_uid, &ClaimPod::uid) != slice->claim_pods.end()) ++out;
  return out;
}

LiveSlice* Slices::attached_slice(const os::ProcessId& process) const {
  for (const auto& [id, slice] : by_id_)
    if (slice->attached.contains(process)) return slice.get();
  return nullptr;
}

LiveSlice* Slices::slice_of(pid_t pid, const World& world) const {
  if (by_id_.empty()) return nullptr;
  const auto process = world.stat(pid);
  if (!process) return nullptr;
  if (LiveSlice* const slice = attached_slice(process->id)) return slice;
  std::vector<const SliceIdentity*> identities;
  std::vector<LiveSlice*> owners;
  for (const auto& [id, slice] : by_id_) {
    identities.push_back(&slice->identity);
    owners.push_back(slice.get());
  }
  const auto found = node::slice_of(*process, identities, world);
  return found ? owners[*found] : nullptr;
}

}  // namespace carve::node
