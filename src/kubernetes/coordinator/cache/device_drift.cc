#include "kubernetes/coordinator/cache/device_drift.h"

#include <algorithm>

namespace carve::kubernetes::coordinator {
namespace {

// Returns whether a change of the container's slice is waiting for the node.
bool changes_container(const CachedPod& pod, const std::string& container) {
  if (!pod.slices) return false;
  const auto slice = pod.slices->containers.find(container);
  return slice != pod.slices->containers.end() && slice->second.memory_before.has_value();
}

// Returns the pod's part of the device on the node, or null if it has none.
const kubernetes::PlacedPart* granted_part(const CachedPod& pod, const std::string& node,
                                           const kubernetes::LedgerPart& part) {
  if (!pod.slices || pod.slices->node != node) return nullptr;
  const auto slice = pod.slices->containers.find(part.container);
  if (slice == pod.slices->containers.end()) return nullptr;
  const auto found = std::ranges::find(slice->second.parts, part.device, &kubernetes::PlacedPart::device);
  return found == slice->second.parts.end() ? nullptr : &*found;
}

}  // namespace

std::vector<DeviceDrift> ledger_drift(const Cache& cache, const std::string& name,
                                      const kubernetes::NodeLedger& ledger) {
  const CachedNode* const found = cache.find_node(name);
  if (found == nullptr || !found->state) return {};
  const fleet::GpuNode& node = *found->state;
  const std::vector<fleet::DeviceUse> uses = device_uses(cache, *found);
  std::vector<DeviceDrift> out;
  for (unsigned i = 0; i < node.devices.size(); ++i) {
    DeviceDrift device{.node = name,
                       .device = i,
                       .uuid = node.devices[i].uuid,
                       .granted = uses[i].memory,
                       .usable = node.devices[i].usable,
                       .rows = {}};
    for (const kubernetes::LedgerPart& part : ledger.parts) {
      if (part.device != device.uuid) continue;
      DeviceDrift::Row row{.holder = part.pod.empty()
                                         ? "slice " + part.slice
                                         : fmt::format("pod {}, container {}", part.pod, part.container),
                           .ledger = {part.memory},
                           .in_use = {},
                           .ledger_share = {part.share_bp},
                           .reserved_share = {}};
      if (const CachedPod* const pod = cache.find_pod(part.uid)) {
        if (pod->change || pod->is_reserved) continue;  // The pod is being written.
        if (changes_container(*pod, part.container)) continue;
        const kubernetes::PlacedPart* const granted = granted_part(*pod, name, part);
        if (granted != nullptr) row.in_use = granted->memory, row.reserved_share = granted->share;
      }
      if (row.ledger != row.in_use || row.ledger_share != row.reserved_share)
        device.rows.push_back(std::move(row));
    }
    std::ranges::sort(device.rows, [](const auto& a, const auto& b) {
      return std::pair(b.ledger.count, a.holder) < std::pair(a.ledger.count, b.holder);
    });
    if (!device.rows.empty()) out.push_back(std::move(device));
  }
  return out;
}

std::string text(const DeviceDrift& drift) {
  std::string out = fmt::format(
      "device {} ({}) of node {}: the cache grants {} of {}, but the node's ledger differs: ", drift.device,
      text(drift.uuid), drift.node, text(drift.granted).c_str(), text(drift.usable).c_str());
  constexpr size_t max_named_rows = 4;  // An event note has at most 1 kB.
  for (size_t i = 0; i < std::min(drift.rows.size(), max_named_rows); ++i) {
    const DeviceDrift::Row& row = drift.rows[i];
    out += fmt::format("{}{}: {} in the ledger, {} in the cache", i == 0 ? "" : "; ", row.holder,
                       text(row.ledger).c_str(), text(row.in_use).c_str());
    if (row.ledger_share != row.reserved_share)
      out += fmt::format(", compute {} and {}", text(row.ledger_share).c_str(),
                         text(row.reserved_share).c_str());
  }
  if (drift.rows.size() > max_named_rows)
    out += fmt::format("; and {} more", drift.rows.size() - max_named_rows);
  return out;
}

}  // namespace carve::kubernetes::coordinator
