// The life of a slice: how it begins and what enters it. For its end see ending.h.
//
//   grant -> [creator waits] -> enter | supervise | add_container -> ... -> last process ends, or stop -> end
//
// The order of the steps makes a crash at any point repairable. Every grant is in the ledger first. Shared
// memory without a ledger entry is left over from a crash; an entry without shared memory and live processes
// belongs to an ended slice (node/life/adopt.h).
#pragma once

#include <optional>
#include <string>

#include "node/agent/agent.h"
#include "node/identity/pod_cgroup.h"
#include "node/life/attachments.h"
#include "node/life/ending.h"
#include "node/slice/node_state.h"
#include "wire/api/slice_life.h"

namespace carve::node {

class Lifecycle {
 public:
  explicit Lifecycle(NodeState& node);
  ~Lifecycle();  // Removes the cgroup of the slices if it is unused.
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  Outcome<LiveSlice*> grant(const Request&, const os::ProcessId& creator, const Viewer&);
  Outcome<Entry> enter(LiveSlice&, os::Peer, const EnterRequest&);
  Outcome<void> supervise(LiveSlice&, os::Peer, const api::Supervision&);
  // Sets or removes the time limit of a slice that ends with its processes. `by` names the caller.
  Outcome<void> limit_time(LiveSlice&, const api::TimeLimit&, const std::string& by);
  Outcome<void> add_container(LiveSlice&, pid_t init, const std::string& container);
  // Rejects the processes of a container with this message.
  Outcome<void> refuse_container(LiveSlice&, pid_t init, const std::string& message);
  Outcome<void> set_claim_pods(LiveSlice&, std::vector<ClaimPod>);
  // Answers a process that attaches through the directory of an attach point. The process never gets the
  // answer that it is in no slice.
  std::optional<shm::AttachReply> attach(const AttachPoint&, const os::Peer&, const shm::AttachRequest&,
                                         std::vector<os::Fd>& descriptors,
                                         const std::function<void()>& again);
  // Adopts a slice of an earlier agent. `state` is its state file, if it belongs to this slice and boot.
  // Returns false if the slice has ended.
  bool adopt(const ledger::UsageRecord&, const std::optional<StateFile>& state);
  bool has_populated_cgroup(const std::string& name) const;
  // Removes what an ended slice left behind.
  void remove_remains(const std::string& name, bool cgroup);

  Ending& ending() { return ending_; }
  Attachments& attachments() { return attachments_; }
  const std::string& cgroup_trouble() const { return cgroup_trouble_; }  // Empty if each slice gets a cgroup.

 private:
  // Returns the live slice of the holder if the request is a repetition, or null if there is no live slice.
  Outcome<LiveSlice*> find_by_holder(const Request&) const;
  Outcome<void> is_free_slot(const Request&) const;
  // Prepares the slice for another container of its holder, which may have another slot.
  Outcome<void> open_again(LiveSlice&, const std::optional<ContainerSlot>&);
  struct AttachRefusal {
    shm::AttachStatus status;
    std::string message;
  };
  // Returns the slice of a process that attaches at the point, and adds a new container to the slice.
  Result<LiveSlice*, AttachRefusal> slice_at(const AttachPoint&, const os::Peer&);
  // Returns why the pod of a process at the attach point does not get the slice; no value if it does.
  std::optional<AttachRefusal> refusal_of(LiveSlice&, const os::Peer&, const PodOfProcess&, bool inside);
  AttachRefusal refuse_unknown_pod(LiveSlice&, const os::Peer&, const PodOfProcess&);
  AttachRefusal refuse_foreign(LiveSlice&, const os::Peer&, const std::string& key, std::string message);
  void drop_ended_containers(LiveSlice&);
  Outcome<void> set_up(LiveSlice&, const os::ProcessId& creator);
  Outcome<Cgroup> open_cgroup(const std::string& name) const;
  std::string parts_in_words(const Slice&) const;  // "4 GiB on device 0 and 2 GiB on device 1"
  void make_cgroup(LiveSlice&);
  void watch_adopted(LiveSlice&, const std::optional<StateFile>&);

  NodeState& node_;
  Ending ending_;
  Attachments attachments_;
  std::string group_;  // "carve-1a2b3c4d"
  std::string cgroup_trouble_;
};

// Writes the record's terms into the control page.
void fill_control(const NodeState&, LiveSlice&);

// Return how much host memory the spill of all slices may use, and how much is granted to live slices.
Bytes spill_limit(const Settings&);
Bytes spill_granted(const ledger::Ledger&);

}  // namespace carve::node
