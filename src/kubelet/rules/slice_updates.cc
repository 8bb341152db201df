#include "kubelet/rules/slice_updates.h"

#include <algorithm>

namespace carve::kubelet {

std::optional<kube::PlacedSlice> placed_for(const api::Slice& slice, const std::string& node,
                                            const kube::ObjectsByUid& pods) {
  if (slice.state == SliceState::ended || !slice.holder || !slice.holder->pod) return std::nullopt;
  const auto pod = pods.find(slice.holder->pod->uid);
  if (pod == pods.end()) return std::nullopt;
  const auto annotation = pod->second.annotations.find(kube::slices_annotation);
  if (annotation == pod->second.annotations.end()) return std::nullopt;
  const auto slices = kube::read_slices(annotation->second);
  if (!slices || slices->node != node) return std::nullopt;
  const auto placed = slices->containers.find(slice.holder->pod->container);
  return placed == slices->containers.end() ? std::nullopt : std::optional(placed->second);
}

namespace {

bool has_one_amount(const api::Slice& slice, const kube::PlacedSlice& placed) {
  if (slice.exclusive || placed.exclusive.value_or(false) || placed.parts.empty()) return false;
  if (slice.parts.size() != placed.parts.size()) return false;
  for (size_t i = 0; i < placed.parts.size(); ++i) {
    if (slice.parts[i].uuid != text(placed.parts[i].device)) return false;
    if (slice.parts[i].quota_bytes != slice.parts[0].quota_bytes ||
        slice.parts[i].share_bp != slice.parts[0].share_bp)
      return false;
    if (placed.parts[i].memory != placed.parts[0].memory || placed.parts[i].share != placed.parts[0].share)
      return false;
  }
  return true;
}

}  // namespace

std::string update_note(const SliceUpdate& update, const std::string& refusal) {
  std::string amounts;
  if (update.change.memory_bytes) amounts = text(Bytes{*update.change.memory_bytes});
  if (update.change.share_bp)
    amounts += fmt::format("{}{} of the compute", amounts.empty() ? "" : " and ",
                           text(Share{*update.change.share_bp}).c_str());
  return refusal.empty() ? fmt::format("container {}: the slice has {} of each device now",
                                       update.holder.container, amounts)
                         : fmt::format("container {}: the slice does not get {} of each device: {}",
                                       update.holder.container, amounts, refusal);
}

std::vector<SliceUpdate> find_updates(const std::vector<api::Slice>& slices, const std::string& node,
                                      const kube::ObjectsByUid& pods) {
  std::vector<SliceUpdate> out;
  for (const api::Slice& slice : slices) {
    const auto placed = placed_for(slice, node, pods);
    if (!placed || !has_one_amount(slice, *placed)) continue;
    SliceUpdate update{.slice = slice.name, .holder = *slice.holder->pod, .change = {}};
    const kube::PlacedPart& part = placed->parts.front();
    if (part.memory.count != slice.parts[0].quota_bytes) update.change.memory_bytes = part.memory.count;
    if (part.share.basis_points != slice.parts[0].share_bp) update.change.share_bp = part.share.basis_points;
    if (update.change.memory_bytes || update.change.share_bp) out.push_back(std::move(update));
  }
  return out;
}

}  // namespace carve::kubelet
