#include "kubernetes/node/rules/ledger_drift.h"

#include <algorithm>

#include "kubernetes/node/rules/slice_updates.h"

namespace carve::kubernetes::node {
namespace {

bool is_same_amount(const api::Slice& slice, const api::SlicePart& part,
                    const std::optional<kubernetes::PlacedSlice>& placed) {
  if (!placed) return false;
  const auto granted = std::ranges::find(
      placed->parts, part.uuid, [](const kubernetes::PlacedPart& each) { return text(each.device); });
  if (granted == placed->parts.end()) return false;
  if (slice.exclusive && placed->exclusive.value_or(false)) return true;
  const bool is_same_memory =
      granted->memory.count == part.quota_bytes || placed->memory_before == part.quota_bytes;
  return is_same_memory && granted->share.basis_points == part.share_bp;
}

kubernetes::LedgerPart part_of(const api::Slice& slice, const api::SlicePart& part, const Uuid& device) {
  kubernetes::LedgerPart out{.slice = slice.name,
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

std::vector<kubernetes::LedgerPart> find_drift(const std::vector<api::Slice>& slices, const std::string& node,
                                               const kubernetes::ObjectsByUid& pods) {
  std::vector<kubernetes::LedgerPart> out;
  for (const api::Slice& slice : slices) {
    if (slice.state == SliceState::ended || (slice.holder && slice.holder->claim)) continue;
    const auto placed = placed_for(slice, node, pods);
    for (const api::SlicePart& part : slice.parts)
      if (const auto device = parse_uuid(part.uuid); device && !is_same_amount(slice, part, placed))
        out.push_back(part_of(slice, part, *device));
  }
  std::ranges::sort(out, {},
                    [](const kubernetes::LedgerPart& part) { return std::pair(part.slice, part.device); });
  return out;
}

void LastingDrift::assume(const kubernetes::NodeLedger& written) {
  for (const kubernetes::LedgerPart& part : written.parts)
    seen_[{part.slice, part.device}] = {.part = part, .since = -drift_patience_ns};
}

kubernetes::NodeLedger LastingDrift::lasting(const std::vector<kubernetes::LedgerPart>& found,
                                             kubernetes::Nanoseconds now) {
  std::map<Key, Seen> still;
  kubernetes::NodeLedger out;
  for (const kubernetes::LedgerPart& part : found) {
    const Key key{part.slice, part.device};
    const auto before = seen_.find(key);
    const bool is_known = before != seen_.end() && before->second.part == part;
    const Seen& seen = still[key] = {.part = part, .since = is_known ? before->second.since : now};
    if (now - seen.since < drift_patience_ns) continue;
    if (out.parts.size() < kubernetes::max_ledger_parts)
      out.parts.push_back(part);
    else
      ++out.left_out;
  }
  seen_ = std::move(still);
  return out;
}

}  // namespace carve::kubernetes::node
