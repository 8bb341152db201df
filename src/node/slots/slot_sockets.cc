#include "node/slots/slot_sockets.h"

#include "node/cdi/cdi.h"
#include "os/log.h"

namespace carve::node {

Outcome<void> announce(const NodeState& node, const LiveSlice& slice) {
  const Settings& settings = node.settings;
  std::vector<unsigned> minors;
  if (settings.paths.sim_set.empty())
    for (const SlicePart& part : slice.granted().parts)
      if (const NodeDevice* d = node.device(part.device)) minors.push_back(d->minor);
  if (slice.slot)
    return write_cdi(settings.cdi_dir, *slice.slot, slice.granted(), settings.socket, settings.paths, minors);
  return write_cdi(settings.cdi_dir, slice.granted(), settings.socket, settings.paths, minors);
}

void withdraw(const NodeState& node, const LiveSlice& slice) {
  if (slice.slot)
    remove_cdi(node.settings.cdi_dir, *slice.slot);
  else if (slice.outlives_processes())
    remove_cdi(node.settings.cdi_dir, slice.name());
}

Outcome<void> open_slot(const NodeState& node, const LiveSlice& slice) {
  if (!slice.slot || !node.slot_listeners.open) return {};
  auto listener = listen_in(node.settings.socket, *slice.slot);
  if (!listener) return tl::unexpected(listener.error());
  node.slot_listeners.open(*slice.slot, std::move(*listener));
  return {};
}

void close_slot(const NodeState& node, const LiveSlice& slice) {
  if (!slice.slot) return;
  if (node.slot_listeners.close) node.slot_listeners.close(*slice.slot);
  remove_attach_directory(node.settings.socket, *slice.slot);
}

void open_slots(const NodeState& node) {
  for (const auto& [id, slice] : node.slices)
    if (const auto opened = open_slot(node, *slice); !opened)
      os::log::error("{}: {}", slice->name(), opened.error().message);
}

}  // namespace carve::node
