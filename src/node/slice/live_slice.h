// One live slice as the agent holds it: its record, its shared memory, its processes, its measurements. The
// ledger, the shared memory and the state file repeat all of it, so that a new agent can build it again.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "core/violation.h"
#include "core/xid.h"
#include "ledger/usage_record.h"
#include "node/agent/event_budget.h"
#include "node/slice/cgroup.h"
#include "node/slice/identity.h"
#include "node/slice/shared_memory.h"
#include "node/slice/state_file.h"
#include "wire/shm/budget.h"

namespace carve::node {

// A process that attached; it has a slot in the shared memory.
struct AttachedProcess {
  unsigned slot = 0;
  os::Fd pidfd;

  // The process asked to attach as another image. Whether it has no mapping of its report page any more is
  // found by an inspection.
  struct OtherImage {
    uint64_t image = 0;
    bool inspected = false;
    bool replaced = false;
  };
  std::optional<OtherImage> other_image;
  bool is_inspected = false;  // An inspection for reclaim_after_exec() is under way.
};

// The measurements of one slice part.
struct PartUsage {
  shm::InUse requested;     // Bytes in use when the last sample was requested.
  Bytes used;               // Driver-reported bytes of the slice's processes.
  Bytes peak;               // The largest number of bytes charged.
  unsigned sm_percent = 0;  // Driver-reported, in the last sample.
};

struct Watched {  // A process whose end the agent waits for.
  os::ProcessId id;
  os::Fd pidfd;
};

struct LiveSlice {
  ledger::UsageRecord record;
  std::string command;
  Mapped<shm::Control> control;
  os::Fd control_file, control_reader;  // Of the page: for reading and writing, and as its processes get it.
  Report report;                        // Empty if it was lost with the fd store; no process can attach then.
  std::optional<Cgroup> cgroup;
  SliceIdentity identity;

  bool entered = false;
  Watched creator, root, supervisor;
  std::vector<Watched> containers;  // Their first processes, parallel to identity.containers.
  std::map<os::ProcessId, AttachedProcess> attached;
  std::map<os::ProcessId, os::Fd> descendants;  // Known living descendants, if the slice has no cgroup.
  std::map<pid_t, Bytes> used_by_pid;           // Driver-reported, on all devices.
  std::array<PartUsage, shm::max_devices> measured;
  std::set<os::ProcessId> stopped;  // By SIGSTOP, because the slice has no cgroup to freeze.
  uint64_t busy_ns = 0;             // Charged time on all devices, over restarts of the agent.
  XidCounts xids;                   // Caused by its processes: how often each, since the agent started.
  Violations violations;            // Since the agent started.
  EventBudget event_budget;         // Of the events that its processes cause.
  uint64_t next_members_turn =
      0;                // Turn of the reconcile loop that reads its cgroup again (slice_members.h).
  bool frozen = false;  // Frozen by the audit.

  std::optional<ContainerSlot> slot;   // Where its containers attach; none: at the common attach socket.
  bool released = false;               // It ends with its last process: its pod or claim is gone.
  std::set<std::string> foreign_pods;  // Uids of other pods that tried to attach through its slot.

  bool ended = false;  // The slice has ended; only the object is left.
  bool stopping = false;
  std::string why;  // Why it is stopping.

  uint64_t id() const { return record.id; }
  ledger::UsedAmounts used_amounts() const {
    ledger::UsedAmounts out{.busy_ns = busy_ns};
    for (const PartUsage& part : measured) out.peak_bytes = std::max(out.peak_bytes, part.peak.count);
    return out;
  }
  const Slice& granted() const { return record.slice; }
  const std::string& name() const { return record.slice.name; }
  bool outlives_processes() const { return record.slice.outlives_processes(); }
  // Returns whether programs enter the slice, not containers alone: those of `carve run`, and those of a
  // supervisor in a slice that outlives them.
  bool has_programs() const { return !outlives_processes() || supervisor.id; }
  bool limited() const { return record.slice.isolation != Isolation::none; }

  // Bytes that count against the quota of part `d` now, and managed bytes in host memory; 0 without a report.
  // The slice can write any number: no slice holds more than its device has, and spills no more than its
  // limit. All that is shown or recorded comes from here.
  Bytes charged(unsigned d) const {
    const SlicePart& part = granted().parts[d];
    return report.page ? clipped(shm::in_use(report.page->charges, d), part.native) : Bytes();
  }
  Bytes spilled(unsigned d) const {
    return report.page ? clipped(shm::in_use(report.page->spill, d), granted().parts[d].spill) : Bytes();
  }

 private:
  // A device's size is not known of a slice that an older agent granted.
  static Bytes clipped(const shm::InUse& reported, Bytes limit) {
    return {limit.count == 0 ? reported.bytes : std::min(reported.bytes, limit.count)};
  }
};

}  // namespace carve::node
