// Reconciles the ledger with what is observed. After a crash, a lost disk or a manual change the two may
// differ. Each kind of drift is a row of one table (reconcile.cc) that says which side is corrected.
// `update_ledger`: a change of the ledger corrects it. `update_machine`: the caller corrects the machine.
// `report_only`: nothing is changed, and the drift is reported.
//
// Pure: the observation goes in, the list of drift comes out, in an order in which its changes can be posted
// one after the other. Posting them leaves no drift that has a repair and never over-commits. Posting them
// again changes nothing.
#pragma once

#include <set>

#include "ledger/ledger.h"

namespace carve::ledger {

enum class DriftKind : uint8_t {
  device_unknown,         // The driver reports a device that is not in the ledger.
  device_resized,         // The device has another size.
  device_too_small,       // The device has less memory than slices hold of it.
  device_gone,            // The driver does not report a device of the ledger.
  record_lost,            // The ledger was lost; a state file describes a living slice.
  record_unreadable,      // The ledger was lost; a state file contradicts the other slices.
  slice_over,             // A living slice has no process any more.
  shared_memory_differs,  // The shared memory of a living slice has other terms.
  shared_memory_stale,    // Shared memory of no living slice.
  device_differs,         // The device has another number, name or reserve.
};
enum class Resolution : uint8_t { update_ledger, update_machine, report_only };

struct StateFileSeen {  // The state file of one slice in the runtime directory.
  std::string name;
  std::optional<UsageRecord> record;  // Nothing if the file is unreadable or of another boot.
};

struct Observed {
  std::string boot_id;
  std::vector<Device> devices;  // As the driver reports them, with the reserve that is wanted.
  std::vector<StateFileSeen> state_files;
  std::optional<std::set<uint64_t>>
      has_processes;         // Ids of slices with a living process; nothing: not scanned yet.
  bool ledger_lost = false;  // The ledger is new: only the state files are known.
};

struct Drift {
  DriftKind kind;
  std::string subject;   // "device 0", "slice train".
  std::string name;      // The slice's name; empty: the subject is a device.
  std::string recorded;  // What the ledger says.
  std::string observed;  // What was observed.
  Resolution resolution;
  std::string repair;            // What is done about it, as a sentence.
  std::optional<Change> change;  // Of the ledger, if the resolution is update_ledger.
};

std::vector<Drift> find_drift(const Ledger&, const Observed&, const Stamp& now);

// "slice train: the ledger says it lives, and its last process has ended: it is ended in the ledger"
std::string sentence(const Drift&);

}  // namespace carve::ledger
