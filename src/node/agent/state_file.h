// What the agent writes down about a slice beside its pages, for its successor: everything that is neither
// in the ledger nor in the Control page. With the pages it is enough to rebuild a ledger that was lost.
#pragma once

#include "ledger/usage_record.h"
#include "node/slice/identity.h"
#include "wire/api/json.h"

namespace carve::node {

struct StateFile {
  ledger::UsageRecord record;
  std::string boot_id;  // In which it was written: pages of an earlier one are nobody's.
  std::string command;  // For people.
  bool cgroup = false;  // It has one of the agent's making.
  bool entered = false;
  ProcessId creator;
  ProcessId root, supervisor;
  std::vector<ContainerIdentity> containers;
};

std::string write_state_file(const StateFile&);
std::optional<StateFile> read_state_file(
    const std::string& text);  // Nothing where it is not what write_note() wrote.

}  // namespace carve::node
