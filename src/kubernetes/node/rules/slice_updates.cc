#include "kubernetes/node/rules/slice_updates.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::kubernetes::node {

std::optional<kubernetes::PlacedSlice> placed_for(const api::Slice& slice, const std::string& node,
                                                  const kubernetes::ObjectsByUid& pods) {
  if (slice.state == SliceState::ended || !slice.holder || !slice.holder->pod) return std::nullopt;
  const auto pod = pods.find(slice.holder->pod->uid);
  if (pod == pods.end()) return std::nullopt;
  const auto annotation = pod->second.annotations.find(kubernetes::slices_annotation);
  if (annotation == pod->second.annotations.end()) return std::nullopt;
  const auto slices = kubernetes::read_slices(annotation->second);
  if (!slices || slices->node != node) return std::nullopt;
  const auto placed = slices->containers.find(slice.holder->pod->container);
  return placed == slices->containers.end() ? std::nullopt : std::optional(placed->second);
}

namespace {

bool has_one_amount(const api::Slice& slice, const kubernetes::PlacedSlice& placed) {
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
  invariant(update.change.memory_bytes || update.change.share_bp, "an update changes at least one amount");
  std::string amounts;
  if (update.change.memory_bytes) amounts = text(Bytes{*update.change.memory_bytes});
  if (update.change.share_bp)
    amounts += fmt::format("{}{} of the compute", amounts.empty() ? "" : " and ",
                           text(Share{*update.change.share_bp}).c_str());
  return refusal.empty() ? fmt::format("container {}: the slice now has {} of each device",
                                       update.holder.container, amounts)
                         : fmt::format("container {}: the slice does not get {} of each device: {}",
                                       update.holder.container, amounts, refusal);
}

std::vector<SliceUpdate> find_updates(const std::vector<api::Slice>& slices, const std::string& node,
                                      const kubernetes::ObjectsByUid& pods) {
  std::vector<SliceUpdate> out;
  for (const api::Slice& slice : slices) {
    const auto placed = placed_for(slice, node, pods);
    if (!placed || !has_one_amount(slice, *placed)) continue;
    SliceUpdate update{.slice = slice.name,
                       .holder = *slice.holder->pod,
                       .change = {},
                       .is_awaited = placed->memory_before.has_value()};
    invariant(!placed->parts.empty() && placed->parts.size() == slice.parts.size(),
              "a slice with one amount has the devices of the annotation");
    const kubernetes::PlacedPart& part = placed->parts.front();
    if (part.memory.count != slice.parts[0].quota_bytes) update.change.memory_bytes = part.memory.count;
    if (part.share.basis_points != slice.parts[0].share_bp) update.change.share_bp = part.share.basis_points;
    if (update.change.memory_bytes || update.change.share_bp) out.push_back(std::move(update));
  }
  return out;
}

namespace {

// Returns the result of one container's change, or no value if it is not known yet.
std::optional<std::string> refusal_of(const std::vector<api::Slice>& slices, const PodContainer& holder,
                                      const kubernetes::PlacedSlice& placed, const UpdateAnswers& answers) {
  for (const api::Slice& slice : slices) {
    if (slice.state == SliceState::ended || !slice.holder || !slice.holder->pod) continue;
    if (slice.holder->pod->uid != holder.uid || slice.holder->pod->container != holder.container) continue;
    if (!has_one_amount(slice, placed))
      return fmt::format("container {}: the slice's devices differ from the pod's annotation",
                         holder.container);
    if (slice.parts[0].quota_bytes == placed.parts[0].memory.count) continue;
    const auto answer = answers.find(slice.name);
    if (answer == answers.end() || answer->second.update.change.memory_bytes != placed.parts[0].memory.count)
      return std::nullopt;
    if (!answer->second.refusal || answer->second.refusal->empty()) return std::nullopt;
    return update_note(answer->second.update, *answer->second.refusal)
        .substr(0, kubernetes::max_refusal_bytes);
  }
  return "";
}

}  // namespace

std::vector<kubernetes::ChangeResult> find_results(const std::vector<api::Slice>& slices,
                                                   const std::string& node,
                                                   const kubernetes::ObjectsByUid& pods,
                                                   const UpdateAnswers& answers) {
  std::vector<kubernetes::ChangeResult> out;
  for (const auto& [uid, pod] : pods) {
    const auto annotation = pod.annotations.find(kubernetes::slices_annotation);
    if (annotation == pod.annotations.end()) continue;
    const auto granted = kubernetes::read_slices(annotation->second);
    if (!granted || granted->node != node) continue;
    for (const auto& [container, placed] : granted->containers) {
      if (!placed.memory_before || placed.parts.empty() || out.size() >= kubernetes::max_change_results)
        continue;
      const PodContainer holder{
          .namespace_ = pod.name_space, .name = pod.name, .uid = uid, .container = container};
      if (auto refusal = refusal_of(slices, holder, placed, answers))
        out.push_back({.uid = uid,
                       .container = container,
                       .memory = placed.parts[0].memory.count,
                       .refusal = std::move(*refusal)});
    }
  }
  return out;
}

}  // namespace carve::kubernetes::node
