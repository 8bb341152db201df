// One live slice on the agent's side: its record, its shared memory, its processes, its measurements. All of
// it is also in the ledger, the shared memory and the state file, so that a new agent can rebuild it.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "core/event_budget.h"
#include "core/violation.h"
#include "core/xid.h"
#include "ledger/usage_record.h"
#include "node/identity/cgroup.h"
#include "node/identity/identity.h"
#include "node/pages/shared_memory.h"
#include "node/pages/state_file.h"
#include "wire/shm/budget.h"

namespace carve::node {

// A process that attached; it has a slot in the shared memory.
struct AttachedProcess {
  unsigned slot = 0;
  os::Fd pidfd;

  // The process requested to attach as another image. An inspection finds out whether it no longer maps its
  // report page.
  struct OtherImage {
    uint64_t image = 0;
    bool inspected = false;
    bool replaced = false;
  };
  std::optional<OtherImage> other_image;
  bool is_inspected = false;  // An inspection for reclaim_after_exec() is in progress.
};

// The measurements of one slice part.
struct PartUsage {
  shm::InUse requested;     // Bytes in use when the last sample was requested.
  Bytes used;               // Driver-reported bytes of the slice's processes.
  Bytes peak;               // The most bytes that were ever charged.
  unsigned sm_percent = 0;  // Driver-reported, for the last seconds.
};

struct Watched {  // A process whose end the agent waits for.
  os::ProcessId id;
  os::Fd pidfd;
};

struct LiveSlice {
  ledger::UsageRecord record;
  std::string command;
  Mapped<shm::Control> control;
  os::Fd control_file, control_reader;  // The page, for reading and writing, and as passed to processes.
  Report report;                        // Empty if it was lost with the fd store; no process can attach then.
  std::optional<Cgroup> cgroup;
  SliceIdentity identity;

  bool entered = false;
  Watched creator, root, supervisor;
  std::vector<Watched> containers;  // Their first processes, parallel to identity.containers.
  std::map<os::ProcessId, AttachedProcess> attached;
  std::map<os::ProcessId, os::Fd> descendants;  // Known live descendants, if the slice has no cgroup.
  std::map<pid_t, Bytes> used_by_pid;           // Driver-reported, on all devices.
  std::array<PartUsage, shm::max_devices> measured;
  std::set<os::ProcessId> stopped;  // Stopped by SIGSTOP, because the slice has no cgroup to freeze.
  uint64_t busy_ns = 0;             // Charged time on all devices, across restarts of the agent.
  XidCounts xids;                   // By Xid: how often its processes caused it since the agent started.
  Violations violations;            // Since the agent started.
  EventBudget event_budget;         // For events that its processes cause.
  EventBudget change_budget;        // For changes of its terms, each of which the ledger keeps forever.
  uint64_t next_members_turn = 0;  // Next turn of the reconcile loop that reads its cgroup (slice_members.h).
  bool frozen = false;             // Frozen by the audit.

  std::optional<ContainerSlot> slot;   // Where its containers attach. No value for the common attach socket.
  bool released = false;               // Its pod or claim is gone, so it ends with its last process.
  std::set<std::string> foreign_pods;  // Uids of other pods that have tried to attach through its slot.

  bool ended = false;  // The slice has ended; only the object remains.
  bool stopping = false;
  std::string why;  // Why it is stopping.

  uint64_t id() const { return record.id; }
  ledger::UsedAmounts used_amounts() const {
    ledger::UsedAmounts out{.busy_ns = busy_ns};
    for (const PartUsage& part : measured) out.peak_bytes = std::max(out.peak_bytes, part.peak.count);
    return out;
  }
  // Raises the peaks to the current charges. Called at each turn of the reconcile loop, and before the
  // charges of an ended process are released.
  void raise_peaks() {
    for (unsigned d = 0; d < granted().parts.size() && report.page; ++d)
      if (granted().parts[d].native.count != 0)  // Otherwise the slice could write any number.
        measured[d].peak = std::max(measured[d].peak, charged(d));
  }
  const Slice& granted() const { return record.slice; }
  const std::string& name() const { return record.slice.name; }
  bool outlives_processes() const { return record.slice.outlives_processes(); }
  // Returns whether programs, not only containers, enter the slice: those of `carve run`, and those of a
  // supervisor in a slice that outlives them.
  bool has_programs() const { return !outlives_processes() || supervisor.id; }
  bool limited() const { return record.slice.isolation != Isolation::none; }

  // Returns the bytes that count against the quota of part `d` now, and the managed bytes in host memory; 0
  // without a report. The slice can write any number, so they are limited: no slice holds more than its
  // device has, or spills more than its limit. All displayed and recorded figures come from here.
  Bytes charged(unsigned d) const {
    const SlicePart& part = granted().parts[d];
    return report.page ? clipped(shm::in_use(report.page->charges, d), part.native) : Bytes();
  }
  Bytes spilled(unsigned d) const {
    return report.page ? clipped(shm::in_use(report.page->spill, d), granted().parts[d].spill) : Bytes();
  }

 private:
  // A device's size is unknown for a slice that an older agent granted.
  static Bytes clipped(const shm::InUse& reported, Bytes limit) {
    return {limit.count == 0 ? reported.bytes : std::min(reported.bytes, limit.count)};
  }
};

}  // namespace carve::node
