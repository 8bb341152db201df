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
  if (const auto point = slice.attach_point())
    return write_cdi(settings.cdi_dir, *point, slice.granted(), settings.socket, settings.paths, minors);
  return write_cdi(settings.cdi_dir, slice.granted(), settings.socket, settings.paths, minors);
}

void withdraw(const NodeState& node, const LiveSlice& slice) {
  if (const auto point = slice.attach_point())
    remove_cdi(node.settings.cdi_dir, *point);
  else if (slice.outlives_processes())
    remove_cdi(node.settings.cdi_dir, slice.name());
}

Outcome<void> open_attach_point(const NodeState& node, const LiveSlice& slice) {
  const auto point = slice.attach_point();
  if (!point || !node.attach_listeners.open) return {};
  auto listener = listen_in(node.settings.socket, *point);
  if (!listener) return tl::unexpected(listener.error());
  node.attach_listeners.open(*point, std::move(*listener));
  return {};
}

void close_attach_point(const NodeState& node, const LiveSlice& slice) {
  const auto point = slice.attach_point();
  if (!point) return;
  if (node.attach_listeners.close) node.attach_listeners.close(*point);
  remove_attach_directory(node.settings.socket, *point);
}

void open_attach_points(const NodeState& node) {
  for (const auto& [id, slice] : node.slices)
    if (const auto opened = open_attach_point(node, *slice); !opened)
      os::log::error("{}: {}", slice->name(), opened.error().message);
}

}  // namespace carve::node
