// Reconciles the ledger with the observed state. The two may differ after a crash, a lost disk or a manual
// change. Each possible drift is a row of a table (reconcile.cc) with its resolution: `update_ledger` changes
// the ledger; `update_machine` has the caller of find_drift() change the node; `report_only` only reports the
// drift.
//
// find_drift() is pure: it takes the observed state and returns a list. The changes in it can be posted in
// the order of the list. Posting them leaves no drift to repair, never over-commits, and has no effect if
// repeated.
#pragma once

#include <set>

#include "ledger/ledger.h"

namespace carve::ledger {

enum class DriftKind : uint8_t {
  device_unknown,         // The driver reports a device that the ledger does not have.
  device_resized,         // The size of the device has changed.
  device_too_small,       // The device is now smaller than the bytes held by its slices.
  device_gone,            // The ledger has a device that the driver does not report.
  end_lost,               // A live slice of the ledger had ended before the newest changes were lost.
  terms_lost,             // A slice's change of terms is among the lost changes.
  record_lost,            // A state file describes a slice for which the ledger has no record.
  record_unreadable,      // As above, but the slice does not fit next to the others.
  slice_over,             // A slice that is live in the ledger has no process left.
  shared_memory_differs,  // The shared memory of a live slice has other terms.
  shared_memory_stale,    // Shared memory without a live slice.
  device_differs,         // The device has another index, name or reserve.
};
enum class Resolution : uint8_t { update_ledger, update_machine, report_only };

// A slice's files in the runtime directory.
struct StateFileSeen {
  std::string name;
  // The record in the state file. No value if the file cannot be read or was written before the last boot.
  std::optional<UsageRecord> record;
  // The ledger has this record, and it has ended.
  bool has_ended = false;
};

struct Observed {
  std::string boot_id;
  std::vector<Device> devices;  // As the driver reports them, with the reserve to apply.
  std::vector<StateFileSeen> state_files;
  // Ids of records that have processes. No value if the processes have not been scanned yet.
  std::optional<std::set<uint64_t>> has_processes;
  // The ledger has lost its newest changes because it is new or an older copy, so the state files are newer.
  bool is_behind = false;
  // Ids of live records that had ended before the changes were lost.
  std::set<uint64_t> ended_before;
};

struct Drift {
  DriftKind kind;
  std::string subject;   // The subject: "device 0", "slice train".
  std::string name;      // The slice's name; empty for a device.
  std::string recorded;  // State in the ledger.
  std::string observed;  // Observed state.
  Resolution resolution;
  std::string repair;            // The result of the repair, as a past participle.
  std::optional<Change> change;  // The change of the ledger if the resolution is update_ledger.
};

std::vector<Drift> find_drift(const Ledger&, const Observed&, const Stamp& now);

// Returns "slice train: ended in the ledger (recorded: live; observed: its last process ended ...)".
std::string message(const Drift&);

}  // namespace carve::ledger
