#include "node/slots/slot_peer.h"

namespace carve::node {

SlotPeer judge_slot_peer(const PodOfProcess& pod, const std::string& uid, bool inside) {
  if (pod.uids.empty()) return inside ? SlotPeer::inside : SlotPeer::unknown;
  if (pod.uids != std::set<std::string>{uid}) return SlotPeer::other_pod;
  return inside ? SlotPeer::inside : SlotPeer::new_container;
}

os::ProcessId first_process_in(const os::ProcessId& process, const Cgroups& container, const World& world) {
  const ContainerIdentity identity{.init = {}, .cgroups = container, .pid_namespace = 0};
  os::ProcessId top = process;
  for (int generation = 0; generation < max_ancestors; ++generation) {
    const auto stat = world.stat(top.pid);
    if (!stat || stat->parent <= 0 || !is_in(identity, world.cgroups(stat->parent), 0)) break;
    const auto parent = world.stat(stat->parent);
    if (!parent) break;
    top = parent->id;
  }
  return top;
}

}  // namespace carve::node
