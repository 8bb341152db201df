// The book beside the world. After a crash, a lost disk or a stranger's hand the two may differ; then
// somebody must be right. Each way in which they can differ is a row of one table (reconcile.cc) that says
// who: where the direction is `update_ledger` a change of the book makes it true, where it is
// `update_machine` the world is put right by whoever asked, and where it is `report_only` nothing is done and
// somebody must be told.
//
// Pure: what was observed goes in, the list comes out, in an order in which its changes can be posted one
// after the other. Posting them leaves no disagreement to repair, never over-commits, and doing it again
// changes nothing.
#pragma once

#include <set>

#include "ledger/ledger.h"

namespace carve::ledger {

enum class DriftKind : uint8_t {
  device_unknown,         // The driver shows a device that the book does not know.
  device_resized,         // It has another size.
  device_too_small,       // ... and now less than is held of it.
  device_gone,            // The book knows a device that the driver does not show.
  record_lost,            // The book was lost; a note tells of a slice that lives.
  record_unreadable,      // ... but the slice cannot stand in the book beside the others.
  slice_over,             // Nobody of a living slice is left.
  shared_memory_differs,  // The pages of a living slice tell other terms.
  shared_memory_stale,    // Pages of no living slice.
  device_differs,         // Its number or name is another, or another part of it is to be kept back.
};
enum class Resolution : uint8_t { update_ledger, update_machine, report_only };

struct StateFileSeen {  // What lies in the runtime directory under a slice's name.
  std::string name;
  std::optional<UsageRecord>
      record;  // As its note tells it; nothing where it cannot be read or is of another boot.
};

struct Observed {
  std::string boot_id;
  std::vector<Device> devices;  // As the driver shows them, with what is to be reserved.
  std::vector<StateFileSeen> state_files;
  std::optional<std::set<uint64_t>>
      has_processes;         // Uses of which somebody lives; nothing: not looked at yet.
  bool ledger_lost = false;  // The book is new: the notes are all that is known.
};

struct Drift {
  DriftKind kind;
  std::string subject;   // "device 0", "slice train": whom it is about.
  std::string name;      // The slice's; empty: it is about a device.
  std::string recorded;  // What the ledger says,
  std::string observed;  // and what was observed.
  Resolution resolution;
  std::string repair;            // What is done about it.
  std::optional<Change> change;  // Of the book, where the direction is update_ledger.
};

std::vector<Drift> find_drift(const Ledger&, const Observed&, const Stamp& now);

// "slice train: the ledger says it lives, and its last process has ended: it is ended in the ledger"
std::string sentence(const Drift&);

}  // namespace carve::ledger
