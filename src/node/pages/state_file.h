// The state file: what a new agent needs to know about a slice in addition to the ledger and the control
// page. Together with the shared memory it is enough to rebuild a lost ledger. It is a JSON document with the
// fields of StateFile (core/fields.h).
#pragma once

#include "core/container_slot.h"
#include "ledger/usage_record.h"
#include "node/identity/identity.h"
#include "node/pages/slice_deadline.h"

namespace carve::node {

struct StateFile {
  ledger::UsageRecord record;
  std::string boot_id;  // Boot of the last write; shared memory of an earlier boot is invalid.
  std::string command;  // For display only.
  bool cgroup = false;  // Whether the slice has a cgroup that the agent created.
  bool entered = false;
  os::ProcessId creator;
  os::ProcessId root, supervisor;
  std::vector<ContainerIdentity> containers;
  std::optional<ContainerSlot> slot;
  bool released = false;
  std::vector<ClaimPod> claim_pods;
  bool is_kept = false;
  std::optional<SliceDeadline> deadline;
};

std::string write_state_file(const StateFile&);
std::optional<StateFile> read_state_file(
    const std::string& text);  // Returns no value if the text is not a state file.

}  // namespace carve::node
