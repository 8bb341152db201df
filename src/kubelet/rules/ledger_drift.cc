#include "kubelet/rules/ledger_drift.h"

#include <algorithm>

#include "kubelet/rules/slice_updates.h"

namespace carve::kubelet {
namespace {

bool is_same_amount(const api::Slice& slice, const api::SlicePart& part,
                    const std::optional<kube::PlacedSlice>& placed) {
  if (!placed) return false;
  const auto granted = std::ranges::find(placed->parts, part.uuid,
                                         [](const kube::PlacedPart& each) { return text(each.device); });
  if (granted == placed->parts.end()) return false;
  if (slice.exclusive && placed->exclusive.value_or(false)) return true;
  return granted->memory.count == part.quota_bytes && granted->share.basis_points == part.share_bp;
}

kube::LedgerPart part_of(const api::Slice& slice, const api::SlicePart& part, const Uuid& device) {
  kube::LedgerPart out{.slice = slice.name,
                       .pod = "",
                       .uid = "",
                       .container = "",
                       .device = device,
                       .memory = part.quota_bytes,
                       .share_bp = part.share_bp};
  if (slice.holder && slice.holder->pod) {
    const PodContainer& pod = *slice.holder->pod;
    out.pod = pod.namespace_ + "/" + pod.name;
    out.uid = pod.uid;
    out.container = pod.container;
  }
  return out;
}

}  // namespace

std::vector<kube::LedgerPart> find_drift(const std::vector<api::Slice>& slices, const std::string& node,
                                         const kube::ObjectsByUid& pods) {
  std::vector<kube::LedgerPart> out;
  for (const api::Slice& slice : slices) {
    if (slice.state == SliceState::ended || (slice.holder && slice.holder->claim)) continue;
    const auto placed = placed_for(slice, node, pods);
    for (const api::SlicePart& part : slice.parts)
      if (const auto device = parse_uuid(part.uuid); device && !is_same_amount(slice, part, placed))
        out.push_back(part_of(slice, part, *device));
  }
  std::ranges::sort(out, {}, [](const kube::LedgerPart& part) { return std::pair(part.slice, part.device); });
  return out;
}

void LastingDrift::assume(const kube::NodeLedger& written) {
  for (const kube::LedgerPart& part : written.parts)
    seen_[{part.slice, part.device}] = {.part = part, .since = -drift_patience_ns};
}

kube::NodeLedger LastingDrift::lasting(const std::vector<kube::LedgerPart>& found, kube::Nanoseconds now) {
  std::map<Key, Seen> still;
  kube::NodeLedger out;
  for (const kube::LedgerPart& part : found) {
    const Key key{part.slice, part.device};
    const auto before = seen_.find(key);
    const bool is_known = before != seen_.end() && before->second.part == part;
    const Seen& seen = still[key] = {.part = part, .since = is_known ? before->second.since : now};
    if (now - seen.since < drift_patience_ns) continue;
    if (out.parts.size() < kube::max_ledger_parts)
      out.parts.push_back(part);
    else
      ++out.left_out;
  }
  seen_ = std::move(still);
  return out;
}

}  // namespace carve::kubelet
