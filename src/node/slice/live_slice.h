// The agent's state of one live slice: its record, shared memory, processes and measurements. All of it can
// be rebuilt by a new agent from the ledger, the shared memory and the state file.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/attach_point.h"
#include "core/event_budget.h"
#include "core/violation.h"
#include "core/xid.h"
#include "ledger/usage_record.h"
#include "node/identity/cgroup.h"
#include "node/identity/identity.h"
#include "node/pages/shared_memory.h"
#include "node/pages/state_file.h"
#include "os/clock.h"
#include "wire/shm/budget.h"

namespace carve::node {

// A process that attached and has a slot in the shared memory.
struct AttachedProcess {
  unsigned slot = 0;
  os::Fd pidfd;

  // A request of the process to attach as another image. An inspection shows whether it still maps its report
  // page.
  struct OtherImage {
    uint64_t image = 0;
    bool inspected = false;
    bool replaced = false;
  };
  std::optional<OtherImage> other_image;
  bool is_inspected = false;  // Whether an inspection for reclaim_after_exec() is in progress.
};

// The measurements of one slice part.
struct PartUsage {
  shm::InUse requested;     // Bytes in use when the last sample was requested.
  Bytes used;               // Driver-reported bytes of the slice's processes.
  Bytes peak;               // Maximum of the charged bytes.
  unsigned sm_percent = 0;  // Driver-reported, for the last few seconds.
};

struct Watched {  // A process whose end the agent watches.
  os::ProcessId id;
  os::Fd pidfd;
};

// A container whose processes do not get the slice.
struct RefusedContainer {
  SliceIdentity identity;
  std::string message;
};

struct LiveSlice {
  ledger::UsageRecord record;
  std::string command;
  Mapped<shm::Control> control;
  os::Fd control_file, control_reader;  // The page for reading and writing, and as passed to processes.
  Report report;                        // Empty if lost with the fd store; then no process can attach.
  std::optional<Cgroup> cgroup;
  SliceIdentity identity;

  bool entered = false;
  bool is_kept = false;  // It ends with its supervisor, which may start its program again.
  Watched creator, root, supervisor;
  std::vector<Watched> containers;  // Their first processes, parallel to identity.containers.
  std::map<os::ProcessId, AttachedProcess> attached;
  std::map<os::ProcessId, os::Fd> descendants;  // Known live descendants, if the slice has no cgroup.
  std::map<pid_t, Bytes> used_by_pid;           // Driver-reported bytes on all devices.
  std::array<PartUsage, shm::max_devices> measured;
  std::set<os::ProcessId> stopped;         // Stopped by SIGSTOP, because the slice has no cgroup to freeze.
  uint64_t busy_ns = 0;                    // Charged time on all devices, across restarts of the agent.
  int64_t active_ns = os::monotonic_ns();  // The last sample that showed work; at first, now.
  XidCounts xids;                  // Number of times its processes caused each Xid since the agent started.
  Violations violations;           // Since the agent started.
  EventBudget event_budget;        // For events that its processes cause.
  EventBudget change_budget;       // For changes of its terms, which the ledger keeps forever.
  uint64_t next_members_turn = 0;  // Next turn of the reconcile loop that reads its cgroup (slice_members.h).
  bool frozen = false;             // Frozen by the audit.

  std::optional<ContainerSlot> slot;   // The slot of its container. No value if it has none.
  std::vector<ClaimPod> claim_pods;    // The pods that may use its claim.
  std::set<std::string> unknown_pods;  // Uids of pods that tried to attach and may yet be among claim_pods.
  std::vector<RefusedContainer> refused_containers;
  bool released = false;               // Its pod or claim is gone, so it ends with its last process.
  std::set<std::string> foreign_pods;  // Uids of other pods that tried to attach through its attach point.

  std::optional<SliceDeadline> deadline;  // No value if it has no time limit.

  bool ended = false;  // The slice has ended; only the object remains.
  bool stopping = false;
  std::string why;  // Why it is stopping.

  uint64_t id() const { return record.id; }
  ledger::UsedAmounts used_amounts() const {
    ledger::UsedAmounts out{.busy_ns = busy_ns};
    for (const PartUsage& part : measured) out.peak_bytes = std::max(out.peak_bytes, part.peak.count);
    return out;
  }
  // Raises the peaks to the current charges. Called in each turn of the reconcile loop, and before the
  // charges of an ended process are released.
  void raise_peaks() {
    for (unsigned d = 0; d < granted().parts.size() && report.page; ++d)
      if (granted().parts[d].native.count != 0)  // Otherwise the slice could write any number.
        measured[d].peak = std::max(measured[d].peak, charged(d));
  }
  const Slice& granted() const { return record.slice; }
  const std::string& name() const { return record.slice.name; }
  // Returns where its containers attach; no value for the common attach socket.
  std::optional<AttachPoint> attach_point() const {
    if (slot) return *slot;
    if (granted().holder.claim) return AttachPoint::of_claim(*granted().holder.claim);
    return std::nullopt;
  }
  bool outlives_processes() const { return record.slice.outlives_processes(); }
  // Returns whether programs, rather than only containers, enter the slice: those of `carve run`, and those
  // of a supervisor in a slice that outlives them.
  bool has_programs() const { return !outlives_processes() || supervisor.id; }
  // Returns whether its supervisor may start another program in it.
  bool is_kept_alive() const { return is_kept && supervisor.pidfd && os::alive(supervisor.pidfd); }
  // Returns whether its time limit has been reached, so that no program may enter it.
  bool is_over_time() const { return deadline && deadline->warned_ns != 0; }
  bool limited() const { return record.slice.isolation != Isolation::none; }

  // Return the bytes that currently count against the quota of part `d`, and the managed bytes in host
  // memory; 0 without a report page. The slice can write any number, so the results are clipped: no slice can
  // hold more than its device has or spill more than its limit. All displayed and recorded figures come from
  // these functions.
  Bytes charged(unsigned d) const {
    const SlicePart& part = granted().parts[d];
    return report.page ? clipped(shm::in_use(report.page->charges, d), part.native) : Bytes();
  }
  Bytes spilled(unsigned d) const {
    return report.page ? clipped(shm::in_use(report.page->spill, d), granted().parts[d].spill) : Bytes();
  }

 private:
  // The size of the device is unknown for a slice that an older agent granted.
  static Bytes clipped(const shm::InUse& reported, Bytes limit) {
    return {limit.count == 0 ? reported.bytes : std::min(reported.bytes, limit.count)};
  }
};

}  // namespace carve::node
