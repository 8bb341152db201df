// What the agent writes down about a slice beside its pages, for its successor: everything that is neither
// in the ledger nor in the Control page. With the pages it is enough to rebuild a ledger that was lost.
#pragma once

#include "ledger/usage_record.h"
#include "node/slice/identity.h"
#include "wire/api/json.h"

namespace carve::node {

struct Note {
  ledger::UsageRecord record;
  std::string boot_id;  // In which it was written: pages of an earlier one are nobody's.
  std::string command;  // For people.
  bool cgroup = false;  // It has one of the agent's making.
  bool entered = false;
  ProcessId creator;
  ProcessId root, supervisor;
  std::vector<ContainerIdentity> containers;
};

std::string write_note(const Note&);
std::optional<Note> read_note(const std::string& text);  // Nothing where it is not what write_note() wrote.

}  // namespace carve::node
