// Handles processes that attach through the directory of an attach point. Two facts must agree: the directory
// is mounted only into the containers of the holder, and the path of the process's cgroup contains a pod that may
// use the slice. The slice of a slot then belongs to that container until the container has ended; the next
// container of the pod takes its place. The slice of a claim belongs to all containers of the claim's pods.
#include <unistd.h>

#include <algorithm>

#include "node/life/lifecycle.h"
#include "node/slice/protection.h"
#include "node/slots/slot_peer.h"
#include "os/log.h"

namespace carve::node {
namespace {

using shm::AttachStatus;

constexpr size_t max_foreign_pods = 16;  // Limit of a slice's events about processes of other pods.

bool may_use_claim(const LiveSlice& slice, const std::string& pod_uid) {
  return std::ranges::find(slice.claim_pods, pod_uid, &ClaimPod::uid) != slice.claim_pods.end();
}

// Returns why the process's container does not get the slice; empty if nothing forbids it.
std::string refused_container_of(const LiveSlice& slice, pid_t pid) {
  for (const RefusedContainer& refused : slice.refused_containers)
    if (node::slice_of(pid, {&refused.identity})) return refused.message;
  return "";
}

}  // namespace

std::optional<shm::AttachReply> Lifecycle::attach(const AttachPoint& point, const os::Peer& peer,
                                                  const shm::AttachRequest& request,
                                                  std::vector<os::Fd>& descriptors,
                                                  const std::function<void()>& again) {
  const auto slice = slice_at(point, peer);
  if (!slice) return attach_reply(slice.error().status, slice.error().message);
  return attachments_.attach(**slice, peer, request, descriptors, again);
}

Result<LiveSlice*, Lifecycle::AttachRefusal> Lifecycle::slice_at(const AttachPoint& point,
                                                                 const os::Peer& peer) {
  const auto refuse = [](AttachStatus status, std::string message) {
    return tl::unexpected(AttachRefusal{status, std::move(message)});
  };
  const pid_t pid = peer.process.pid;
  LiveSlice* const slice = node_.slices.find(point);
  if (slice == nullptr || slice->stopping || !slice->granted().holder)
    return refuse(AttachStatus::try_again, fmt::format("{} has no slice", text(point)));
  if (const LiveSlice* known = node_.slices.attached_slice(peer.process)) {
    if (known == slice) return slice;
    return refuse(AttachStatus::no_slot, fmt::format("process {} belongs to slice {}", pid, known->name()));
  }
  const PodOfProcess pod = pod_of(os::cgroups_of(pid));
  const bool inside = node::slice_of(pid, {&slice->identity}).has_value();
  const std::string refused = refused_container_of(*slice, pid);
  // If the process is still alive, the pid was its own throughout; otherwise another process's data may have
  // been read.
  if (!os::alive(peer.pidfd)) return refuse(AttachStatus::try_again, "the process has ended");
  if (!refused.empty()) return refuse(AttachStatus::no_slot, refused);
  if (auto refusal = refusal_of(*slice, peer, pod, inside)) return tl::unexpected(std::move(*refusal));
  if (inside) return slice;
  drop_ended_containers(*slice);
  if (slice->slot && !slice->containers.empty())
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

std::optional<Lifecycle::AttachRefusal> Lifecycle::refusal_of(LiveSlice& slice, const os::Peer& peer,
                                                              const PodOfProcess& pod, bool inside) {
  const AttachPoint point = *slice.attach_point();
  const std::string own_uid = pod.uids.size() == 1 ? *pod.uids.begin() : "";
  const bool is_of_claim = slice.granted().holder.claim.has_value();
  const std::string holder_uid = !is_of_claim                    ? slice.granted().holder.pod->uid
                                 : may_use_claim(slice, own_uid) ? own_uid
                                                                 : "";
  switch (judge_slot_peer(pod, holder_uid, inside)) {
    case SlotPeer::inside: return std::nullopt;
    case SlotPeer::unknown:
      if (const LiveSlice* const other = node_.slices.slice_of(peer.process.pid))
        return refuse_foreign(slice, peer, other->name(),
                              fmt::format("it is in {}, but {} is for {}", text(other->granted().holder),
                                          text(point), text(slice.granted().holder)));
      return AttachRefusal{AttachStatus::try_again,
                           fmt::format("the container of slice {} is not known yet", slice.name())};
    case SlotPeer::other_pod:
      if (is_of_claim) return refuse_unknown_pod(slice, peer, pod);
      return refuse_foreign(slice, peer, fmt::format("{}", fmt::join(pod.uids, ", ")),
                            fmt::format("it is in pod {}, but {} is for {}", fmt::join(pod.uids, ", "),
                                        text(point), text(slice.granted().holder)));
    case SlotPeer::new_container: break;
  }
  // A container with two claims has only the attach directory of one of them. carve-kubelet knows such
  // containers, so the processes of a pod with two claims wait until it has reported their container.
  if (is_of_claim && node_.slices.claims_of(own_uid) > 1)
    return AttachRefusal{
        AttachStatus::try_again,
        fmt::format("pod {} has several claims, and this container is not known yet", own_uid)};
  return std::nullopt;
}

// carve-kubelet looks up whether the pod may use the claim (set_claim_pods()), because a claim may get more pods
// after its slice was granted.
Lifecycle::AttachRefusal Lifecycle::refuse_unknown_pod(LiveSlice& slice, const os::Peer& peer,
                                                       const PodOfProcess& pod) {
  const std::string uids = fmt::format("{}", fmt::join(pod.uids, ", "));
  const bool may_be_looked_up = pod.uids.size() == 1 && !slice.foreign_pods.contains(uids);
  if (may_be_looked_up &&
      (slice.unknown_pods.contains(uids) || slice.unknown_pods.size() < max_foreign_pods)) {
    slice.unknown_pods.insert(uids);
    return {AttachStatus::try_again,
            fmt::format("pod {} is not known yet to use {}", uids, text(slice.granted().holder))};
  }
  return refuse_foreign(
      slice, peer, uids,
      fmt::format("it is in pod {}, which may not use {}", uids, text(slice.granted().holder)));
}

Outcome<void> Lifecycle::set_claim_pods(LiveSlice& slice, std::vector<ClaimPod> pods) {
  if (!slice.granted().holder.claim)
    return failure(FailureKind::invalid_argument, "slice {} does not belong to a claim", slice.name());
  if (pods.size() > max_claim_pods)
    return failure(FailureKind::invalid_argument, "pods: {} are given; a claim has at most {}", pods.size(),
                   max_claim_pods);
  for (const ClaimPod& pod : pods)
    if (const auto good = check(pod); !good) return good;
  slice.claim_pods = std::move(pods);
  for (const std::string& uid : slice.unknown_pods) {
    if (may_use_claim(slice, uid)) continue;
    if (slice.foreign_pods.size() >= max_foreign_pods || !slice.foreign_pods.insert(uid).second) continue;
    const std::string text = fmt::format("processes of pod {} were refused: it may not use {}", uid,
                                         carve::text(slice.granted().holder));
    slice.violations.add(ViolationKind::foreign_process, text);
    node_.event(slice.name(), text);
  }
  slice.unknown_pods.clear();
  std::erase_if(slice.foreign_pods, [&](const std::string& uid) { return may_use_claim(slice, uid); });
  node_.pages.write_state(slice);
  return {};
}

Outcome<void> Lifecycle::refuse_container(LiveSlice& slice, pid_t init, const std::string& message) {
  const auto stat = os::stat_of(init);
  if (!stat) return failure(FailureKind::not_found, "there is no process {}", init);
  const Cgroups cgroups = os::cgroups_of(init);
  const PodOfProcess pod = pod_of(cgroups);
  std::erase_if(slice.refused_containers, [](const RefusedContainer& refused) {
    return !os::open_process(refused.identity.containers.front().init);
  });
  if (slice.refused_containers.size() >= max_claim_pods)
    return failure(FailureKind::failed_precondition, "slice {} already refuses {} containers", slice.name(),
                   max_claim_pods);
  ContainerIdentity container{.init = stat->id, .cgroups = pod.container, .pid_namespace = 0};
  if (pod.container.empty()) container.cgroups = distinguishing(cgroups, os::cgroups_of(getpid()));
  SliceIdentity identity;
  identity.containers.push_back(std::move(container));
  slice.refused_containers.push_back({std::move(identity), message.substr(0, 512)});
  node_.event(slice.name(),
              fmt::format("container of process {} was refused: {}", init, message.substr(0, 512)));
  return {};
}

// Rejects the process. The number of events is limited, because a process may retry endlessly.
Lifecycle::AttachRefusal Lifecycle::refuse_foreign(LiveSlice& slice, const os::Peer& peer,
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
  if (holder.claim && !pod.uids.empty() && (pod.uids.size() != 1 || !may_use_claim(slice, *pod.uids.begin())))
    return failure(FailureKind::failed_precondition, "process {} is in pod {}, which may not use {}", init,
                   fmt::join(pod.uids, ", "), text(holder));
  drop_ended_containers(slice);
  ContainerIdentity container{.init = process.id, .cgroups = pod.container, .pid_namespace = 0};
  if (pod.container.empty()) container.cgroups = distinguishing(cgroups, os::cgroups_of(getpid()));
  if (const uint64_t own = os::pid_namespace_of(init); own != os::pid_namespace_of(getpid()))
    container.pid_namespace = own;
  if (!os::alive(process.pidfd)) return failure(FailureKind::not_found, "process {} has ended", init);
  slice.command = "container " + id.substr(0, 64);
  if (slice.attach_point() &&
      node::slice_of(init, {&slice.identity})) {  // One of its processes attached before.
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
