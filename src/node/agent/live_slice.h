// One live slice as the agent holds it: its record, its shared memory, its processes, its measurements. The
// ledger, the shared memory and the state file repeat all of it, so that a new agent can build it again.
#pragma once

#include <array>

#include "ledger/usage_record.h"
#include "node/agent/state_file.h"
#include "node/compute/arbiter.h"
#include "node/slice/audit.h"
#include "node/slice/cgroup.h"
#include "node/slice/reconcile.h"
#include "node/slice/shared_memory.h"
#include "wire/shm/budget.h"

namespace carve::node {

// A process that attached; it has a slot in the shared memory.
struct AttachedProcess {
  unsigned slot = 0;
  os::Fd pidfd;
};

// The measurements of one slice part.
struct PartUsage {
  Growth growth;
  Reading reading;
  Bytes truth;  // Bytes that NVML reports for the slice's processes.
  Bytes peak;   // The largest number of bytes charged.
  bool beyond_quota = false;
  unsigned sm_percent = 0;                // Driver-reported, in the last sample.
  uint64_t charged_ns = 0, as_of_ns = 0;  // From the arbiter at the last sample.
  Bypass bypass;
};

// A process of the slice that holds device memory and did not attach.
struct UnattachedProcess {
  std::string sentence;
  uint64_t seen = 0;     // Number of the last sample in which the driver reported the process.
  bool stopped = false;  // Stopped by SIGSTOP, because the slice has no cgroup.
};

struct Watched {  // A process whose end the agent waits for.
  os::ProcessId id;
  os::Fd pidfd;
};

struct LiveSlice {
  ledger::UsageRecord record;
  std::string command;
  Mapped<shm::Control> control;
  Report report;  // Empty if it was lost with the fd store; no process can attach then.
  std::optional<Cgroup> cgroup;
  SliceIdentity identity;

  bool entered = false;
  Watched creator, root, supervisor;
  std::vector<Watched> containers;  // Their first processes, parallel to identity.containers.
  std::map<os::ProcessId, AttachedProcess> attached;
  std::map<os::ProcessId, os::Fd> descendants;  // Known living descendants, if the slice has no cgroup.
  std::map<pid_t, Bytes> process_truth;
  std::array<PartUsage, shm::max_devices> measured;
  std::map<os::ProcessId, UnattachedProcess> unattached;
  uint64_t busy_ns = 0;  // Charged time on all devices, over restarts of the agent.
  bool frozen = false;   // Frozen by the audit.

  std::shared_ptr<GangState> gang;  // Set if the slice has several devices.
  bool ended = false;               // The slice has ended; only the object is left.
  bool ensure_reported = false;     // The event about Report::ensure_failures was recorded.
  bool stopping = false;
  std::string why;  // Why it is stopping.

  // Bytes that count against the quota of part `d` now, and managed bytes in host memory; 0 without a report.
  Bytes charged(unsigned d) const {
    return {report.page ? shm::read(report.page->charges.budget[d]).used : 0};
  }
  Bytes spilled(unsigned d) const { return {report.page ? shm::read(report.page->spill.budget[d]).used : 0}; }

  const std::string& name() const { return record.slice.name; }
  bool outlives_processes() const { return record.slice.outlives_processes(); }
  bool limited() const { return record.slice.isolation != Isolation::none; }
};

}  // namespace carve::node
