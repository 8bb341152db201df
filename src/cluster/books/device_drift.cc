// What a node's agent says of its ledger, beside the books.
#include "cluster/books/device_drift.h"

#include <algorithm>

#include "cluster/books/books.h"

namespace carve::cluster {

std::vector<DeviceDrift> Books::ledger_drift(const std::string& name, const kube::NodeLedger& ledger) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || !found->second.state) return {};
  const ClusterNode& node = *found->second.state;
  const std::vector<DeviceBook> books = booked(node, slices_on(found->second));
  std::vector<DeviceDrift> out;
  for (unsigned i = 0; i < node.devices.size(); ++i) {
    DeviceDrift device{.node = name,
                       .device = i,
                       .uuid = node.devices[i].uuid,
                       .granted = books[i].memory,
                       .usable = node.devices[i].usable,
                       .rows = {}};
    for (const kube::LedgerPart& part : ledger.parts) {
      if (part.device != device.uuid) continue;
      DeviceDrift::Row row{.holder = part.pod.empty()
                                         ? "slice " + part.slice
                                         : fmt::format("pod {}, container {}", part.pod, part.container),
                           .ledger = {part.memory},
                           .booked = {},
                           .ledger_share = {part.share_bp},
                           .booked_share = {}};
      if (const auto pod = pods_.find(part.uid); pod != pods_.end()) {
        if (pod->second.change || pod->second.is_reserved) continue;  // It is being written.
        const kube::PlacedPart* const granted = granted_part(pod->second, name, part);
        if (granted != nullptr) row.booked = granted->memory, row.booked_share = granted->share;
      }
      if (row.ledger != row.booked || row.ledger_share != row.booked_share)
        device.rows.push_back(std::move(row));
    }
    std::ranges::sort(device.rows, [](const auto& a, const auto& b) {
      return std::pair(b.ledger.count, a.holder) < std::pair(a.ledger.count, b.holder);
    });
    if (!device.rows.empty()) out.push_back(std::move(device));
  }
  return out;
}

const kube::PlacedPart* Books::granted_part(const PodBook& pod, const std::string& node,
                                            const kube::LedgerPart& part) {
  if (!pod.slices || pod.slices->node != node) return nullptr;
  const auto slice = pod.slices->containers.find(part.container);
  if (slice == pod.slices->containers.end()) return nullptr;
  const auto found = std::ranges::find(slice->second.parts, part.device, &kube::PlacedPart::device);
  return found == slice->second.parts.end() ? nullptr : &*found;
}

std::string text(const DeviceDrift& drift) {
  std::string out = fmt::format(
      "device {} ({}) of node {}: the books grant {} of {}, and the node's ledger differs: ", drift.device,
      text(drift.uuid), drift.node, text(drift.granted).c_str(), text(drift.usable).c_str());
  constexpr size_t max_named_rows = 4;  // An event has 1 kB.
  for (size_t i = 0; i < std::min(drift.rows.size(), max_named_rows); ++i) {
    const DeviceDrift::Row& row = drift.rows[i];
    out += fmt::format("{}{}: {} in the ledger, {} in the books", i == 0 ? "" : "; ", row.holder,
                       text(row.ledger).c_str(), text(row.booked).c_str());
    if (row.ledger_share != row.booked_share)
      out += fmt::format(", {} and {} of the compute", text(row.ledger_share).c_str(),
                         text(row.booked_share).c_str());
  }
  if (drift.rows.size() > max_named_rows)
    out += fmt::format("; and {} more", drift.rows.size() - max_named_rows);
  return out;
}

}  // namespace carve::cluster
