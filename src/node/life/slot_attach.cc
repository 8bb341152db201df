// Handles processes that attach through the directory of a slot. Two facts must agree: the directory is
// mounted only into the slot's container, and the path of the process's cgroup contains the pod. The slice
// then belongs to that container until the container has ended; the next container of the pod takes its
// place.
#include <unistd.h>

#include <algorithm>

#include "node/identity/pod_cgroup.h"
#include "node/life/lifecycle.h"
#include "node/slice/protection.h"
#include "node/slots/slot_peer.h"
#include "os/log.h"

namespace carve::node {
namespace {

using shm::AttachStatus;

constexpr size_t max_foreign_pods = 16;  // Limit of a slice's events about processes of other pods.

}  // namespace

std::optional<shm::AttachReply> Lifecycle::attach(ContainerSlot slot, const os::Peer& peer,
                                                  const shm::AttachRequest& request,
                                                  std::vector<os::Fd>& descriptors,
                                                  const std::function<void()>& again) {
  const auto slice = slice_in(slot, peer);
  if (!slice) return attach_reply(slice.error().status, slice.error().message);
  return attachments_.attach(**slice, peer, request, descriptors, again);
}

Result<LiveSlice*, Lifecycle::SlotRefusal> Lifecycle::slice_in(ContainerSlot slot, const os::Peer& peer) {
  const auto refuse = [](AttachStatus status, std::string message) {
    return tl::unexpected(SlotRefusal{status, std::move(message)});
  };
  const pid_t pid = peer.process.pid;
  LiveSlice* const slice = node_.slices.find(slot);
  if (slice == nullptr || slice->stopping || !slice->granted().holder.pod)
    return refuse(AttachStatus::try_again, fmt::format("slot {} has no slice", text(slot)));
  if (const LiveSlice* known = node_.slices.attached_slice(peer.process)) {
    if (known == slice) return slice;
    return refuse(AttachStatus::no_slot, fmt::format("process {} belongs to slice {}", pid, known->name()));
  }
  const PodOfProcess pod = pod_of(os::cgroups_of(pid));
  const bool inside = node::slice_of(pid, {&slice->identity}).has_value();
  // If the process is still alive, the pid was its own throughout; otherwise another process's data may have
  // been read.
  if (!os::alive(peer.pidfd)) return refuse(AttachStatus::try_again, "the process has ended");
  switch (judge_slot_peer(pod, slice->granted().holder.pod->uid, inside)) {
    case SlotPeer::inside: return slice;
    case SlotPeer::unknown:
      if (const LiveSlice* const other = node_.slices.slice_of(pid))
        return tl::unexpected(
            refuse_foreign(*slice, peer, other->name(),
                           fmt::format("it is in {}, but slot {} is for {}", text(other->granted().holder),
                                       text(slot), text(slice->granted().holder))));
      return refuse(AttachStatus::try_again,
                    fmt::format("the container of slice {} is not known yet", slice->name()));
    case SlotPeer::other_pod: {
      const std::string uids = fmt::format("{}", fmt::join(pod.uids, ", "));
      return tl::unexpected(refuse_foreign(*slice, peer, uids,
                                           fmt::format("it is in pod {}, but slot {} is for {}", uids,
                                                       text(slot), text(slice->granted().holder))));
    }
    case SlotPeer::new_container: break;
  }
  drop_ended_containers(*slice);
  if (!slice->containers.empty())
    return tl::unexpected(refuse_foreign(*slice, peer, "",
                                         fmt::format("it is in another container of its pod; slice {} "
                                                     "belongs to the container of process {}",
                                                     slice->name(), slice->containers.front().id.pid)));
  const ContainerIdentity container{
      .init = first_process_in(peer.process, pod.container), .cgroups = pod.container, .pid_namespace = 0};
  slice->identity.containers.push_back(container);
  slice->containers.push_back({.id = container.init, .pidfd = {}});
  ending_.watch_newest_container(*slice);
  slice->entered = true;
  protect(node_, *slice);
  node_.pages.write_state(*slice);
  node_.event(slice->name(), fmt::format("container of process {} found in {}", container.init.pid,
                                         container.cgroups.begin()->second));
  return slice;
}

// Rejects the process. The number of events is limited, because a process may retry endlessly.
Lifecycle::SlotRefusal Lifecycle::refuse_foreign(LiveSlice& slice, const os::Peer& peer,
                                                 const std::string& key, std::string message) {
  if (slice.foreign_pods.size() < max_foreign_pods && slice.foreign_pods.insert(key).second) {
    const std::string text = fmt::format("process {} was refused: {}", peer.process.pid, message);
    slice.violations.add(ViolationKind::foreign_process, text);
    node_.event(slice.name(), text);
  }
  os::log::debug("{}: process {} was refused: {}", slice.name(), peer.process.pid, message);
  return {AttachStatus::no_slot, std::move(message)};
}

void Lifecycle::drop_ended_containers(LiveSlice& slice) {
  for (size_t i = slice.containers.size(); i-- > 0;) {
    if (slice.containers[i].pidfd && os::alive(slice.containers[i].pidfd)) continue;
    node_.loop.forget(slice.containers[i].pidfd.get());
    slice.containers.erase(slice.containers.begin() + static_cast<ptrdiff_t>(i));
    slice.identity.containers.erase(slice.identity.containers.begin() + static_cast<ptrdiff_t>(i));
  }
}

Outcome<void> Lifecycle::add_container(LiveSlice& slice, pid_t init, const std::string& id) {
  if (!slice.outlives_processes())
    return failure(FailureKind::invalid_argument,
                   "slice {} was not created for containers; create one with carve slice create",
                   slice.name());
  const auto stat = os::stat_of(init);
  Watched process;
  if (stat) process.id = stat->id;
  process.pidfd = stat ? os::open_process(stat->id) : os::Fd();
  if (!process.pidfd) return failure(FailureKind::not_found, "there is no process {}", init);
  if (const LiveSlice* other = node_.slices.slice_of(init); other != nullptr && other != &slice)
    return failure(FailureKind::failed_precondition, "process {} belongs to slice {}", init, other->name());
  const Cgroups cgroups = os::cgroups_of(init);
  const PodOfProcess pod = pod_of(cgroups);
  const Holder& holder = slice.granted().holder;
  if (holder.pod && !pod.uids.empty() && pod.uids != std::set<std::string>{holder.pod->uid})
    return failure(FailureKind::failed_precondition, "process {} is in pod {}, but slice {} is for {}", init,
                   fmt::join(pod.uids, ", "), slice.name(), text(holder));
  drop_ended_containers(slice);
  ContainerIdentity container{.init = process.id, .cgroups = pod.container, .pid_namespace = 0};
  if (pod.container.empty()) container.cgroups = distinguishing(cgroups, os::cgroups_of(getpid()));
  if (const uint64_t own = os::pid_namespace_of(init); own != os::pid_namespace_of(getpid()))
    container.pid_namespace = own;
  if (!os::alive(process.pidfd)) return failure(FailureKind::not_found, "process {} has ended", init);
  slice.command = "container " + id.substr(0, 64);
  if (slice.slot && node::slice_of(init, {&slice.identity})) {  // One of its processes attached before.
    node_.pages.write_state(slice);
    return {};
  }
  if (slice.slot && !slice.containers.empty())
    return failure(FailureKind::failed_precondition,
                   "slice {} is for the container of process {}, which has not ended", slice.name(),
                   slice.containers.front().id.pid);
  slice.identity.containers.push_back(std::move(container));
  slice.containers.push_back(std::move(process));
  ending_.watch_newest_container(slice);
  slice.entered = true;
  protect(node_, slice);
  node_.pages.write_state(slice);
  node_.event(slice.name(), fmt::format("container {} (process {}) started", id.substr(0, 64), init));
  return {};
}

}  // namespace carve::node
