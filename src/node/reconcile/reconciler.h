// Compares what the driver reports with what was charged to the slices, and returns the actions for each
// difference.
//
// The agent's loop calls it with each sample from the driver: once a second, or four times a second while a
// device is arbitrated (node/loop/reconcile_loop.h). Its input and output are values; it makes no system call
// and uses no clock. It keeps only what decisions over several samples need.
//   | difference                                             | action                                        |
//   |--------------------------------------------------------|-----------------------------------------------|
//   | the driver reports more memory than was charged        | ChargeGrowth                                  |
//   | a process holds memory and is not attached             | AddEvent; --audit: FreezeSlice or KillProcess |
//   | kernels ran longer than the arbiter charged, twice     | AddEvent; --audit: FreezeSlice or StopSlice   |
//   | a slice holds more than its quota                      | AddEvent; --over-quota: StopSlice             |
//   | an Xid, a change of a device's health                  | AddEvent                                      |
//   | an assumption of the guest library did not hold        | AddEvent                                      |
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "core/enforcement.h"
#include "core/violation.h"
#include "core/work_shown.h"
#include "node/reconcile/bypass.h"
#include "node/reconcile/growth.h"

namespace carve::node {

struct DeviceObserved {
  unsigned index = 0;  // NVML's index.
  DeviceHealth before, now;
  bool processes_hidden = false;  // The driver does not report the memory of each process.
  std::vector<unsigned> xids;     // Since the last sample.
};

// A process that the driver reports on one device.
struct ProcessObserved {
  size_t device = 0;  // Index in Observed::devices.
  int pid = 0;
  uint64_t start = 0;             // Start time in clock ticks; 0 if the process has ended since.
  std::optional<uint64_t> slice;  // No value if it is in no slice.
  bool attached = false;
  Bytes used;
  WorkShown work;
  bool graphics_only = false;
  std::string command;       // For reports.
  ProcessEvidence evidence;  // Needed if it is in a slice, not attached and not is_known().
};

// The time that the arbiter charged to a slice part since the arbiter started.
struct ChargedTime {
  uint64_t busy_ns = 0;
  uint64_t as_of_ns = 0;
  // Time in which the slice reported work while another slice also had work. One part of it was charged; the
  // other was not, because the driver did not show it.
  uint64_t overlapped_ns = 0;
  uint64_t unsupported_ns = 0;
};

struct PartObserved {
  std::optional<size_t> device;  // Index in Observed::devices; no value if the device is gone.
  Bytes quota;
  Bytes context;  // Bytes of each process's context that the device's reserve covers.
  // The budget word when the sample was requested and now; no value without a report page.
  std::optional<Reading> reading;
  uint64_t charged_growth = 0;
  std::optional<ChargedTime> time;  // No value if the device is not arbitrated.
};

struct SliceObserved {
  uint64_t id = 0;  // Id of its usage record; never 0.
  bool limited = true;
  bool stopping = false;
  bool frozen = false;
  bool refused = false;          // Whether the quota refused memory since the agent started.
  uint32_t ensure_failures = 0;  // Failed assumptions in the guest library (wire/shm/layout.h).
  std::vector<PartObserved> parts;
};

struct Observed {
  std::vector<DeviceObserved> devices;
  std::vector<SliceObserved> slices;
  std::vector<ProcessObserved> processes;
};

struct ReconcileRules {
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
};

struct AddEvent {
  uint64_t slice = 0;  // 0 if the event is about the node.
  std::string text;
  std::optional<ViolationKind> violation = {};  // Set if the slice breaks its limits.
  bool is_caused_by_program = false;            // An event of the node that a program can cause at any rate.
};
struct ChargeGrowth {
  uint64_t slice = 0;
  size_t part = 0;
  uint64_t from = 0, to = 0;  // Bytes of growth that are charged.
};
struct FreezeSlice {
  uint64_t slice = 0;
  size_t process = 0;  // Index in Observed::processes of the process to stop if the slice cannot be frozen.
};
struct KillProcess {
  uint64_t slice = 0;
  size_t process = 0;
};
struct StopSlice {
  uint64_t slice = 0;
  std::string why;
};
using Action = std::variant<AddEvent, ChargeGrowth, FreezeSlice, KillProcess, StopSlice>;

// The figures of one slice as reported by the driver.
struct SliceUse {
  struct Part {
    Bytes used;
    WorkShown work;
    // Charged by the arbiter since the last sample; no value if the device is not arbitrated.
    std::optional<uint64_t> busy_ns;
  };
  std::vector<Part> parts;
  std::map<int, Bytes> by_pid;
  uint64_t busy_ns = 0;  // Charged by the arbiters since the last sample, on all devices.
};

struct Reconciled {
  std::vector<Action> actions;          // Must be carried out in this order.
  std::map<uint64_t, SliceUse> slices;  // Every observed slice, by id.
  // For each device with slices, messages about its unmanaged processes; indexed by the device's position.
  std::vector<std::vector<std::string>> unmanaged;
};

class Reconciler {
 public:
  Reconciled reconcile(const Observed&, const ReconcileRules&);

  // Returns whether this unattached process was reported before, in which case its evidence is not needed.
  bool is_known(uint64_t slice, int pid, uint64_t start) const;

 private:
  struct PartMemory {
    Growth growth;
    Bypass bypass;
    // The opposite case: the slice reports more work than the driver shows. Some drivers report a second
    // late.
    Bypass claims{8};
    bool beyond_quota = false;
    std::deque<ChargedTime> times;  // One for each sample of the longest window, oldest first.
  };
  struct SliceMemory {
    std::vector<PartMemory> parts;
    std::set<std::pair<int, uint64_t>> unattached;        // Pid and start time.
    std::set<std::tuple<int, uint64_t, size_t>> outside;  // Pid, start time and device.
    bool ensure_reported = false;
  };
  struct Step;  // The state during one call.

  std::map<uint64_t, SliceMemory> memory_;
};

}  // namespace carve::node
