// One living slice, as the agent holds it: what it was granted, its shared pages, who belongs to it, and
// what was measured of it. Everything here is repeated in the ledger, the pages or the note, so that a new
// agent can build it again.
#pragma once

#include <array>

#include "ledger/usage_record.h"
#include "node/agent/state_file.h"
#include "node/arbiter/arbiter.h"
#include "node/slice/audit.h"
#include "node/slice/cgroup.h"
#include "node/slice/reconcile.h"
#include "node/slice/shared_memory.h"

namespace carve::node {

// A process that attached, and so has a slot in the pages.
struct AttachedProcess {
  unsigned slot = 0;
  Fd pidfd;
};

// What was measured on one of its devices.
struct PartUsage {
  Growth growth;
  Reading reading;
  Bytes truth;  // What NVML says its processes hold.
  Bytes peak;   // The most that was ever charged.
  bool beyond_quota = false;
  unsigned sm_percent = 0;                // What NVML says its kernels had of the device lately.
  uint64_t charged_ns = 0, as_of_ns = 0;  // By the arbiter, at the last look.
  Bypass bypass;
};

// A process that holds device memory and never attached.
struct UnattachedProcess {
  std::string sentence;
  uint64_t seen = 0;     // When the driver last showed it: counts samples.
  bool stopped = false;  // By SIGSTOP, where there was no cgroup to freeze.
};

struct Watched {  // A process whose end matters.
  ProcessId id;
  Fd pidfd;
};

struct LiveSlice {
  ledger::UsageRecord record;
  std::string command;
  Mapped<shm::Control> control;
  Report report;  // Empty where it was lost with its fd store: nobody can attach any more.
  std::optional<Cgroup> cgroup;
  SliceIdentity identity;

  bool entered = false;
  Watched creator, root, supervisor;
  std::vector<Watched> containers;  // Their first processes, parallel to identity.containers.
  std::map<ProcessId, AttachedProcess> attached;
  std::map<ProcessId, Fd> descendants;  // Known living ones, where there is no cgroup.
  std::map<pid_t, Bytes> process_truth;
  std::array<PartUsage, shm::max_devices> measured;
  std::map<ProcessId, UnattachedProcess> unattached;
  bool frozen = false;  // By the audit.

  std::shared_ptr<GangState> gang;  // Where it has several devices.
  bool ended = false;               // Only its memory is left.
  bool stopping = false;
  std::string why;  // It is stopping.

  const std::string& name() const { return record.slice.name; }
  bool persistent() const { return record.slice.persistent; }
  bool limited() const { return record.slice.isolation != Isolation::none; }
};

}  // namespace carve::node
