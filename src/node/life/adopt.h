// Adopts the slices of an earlier agent. The expected slices are read from the ledger, their earlier state
// from state files and shared memory, and the live processes from the kernel. Programs are not disturbed:
// shared memory, cgroups and socket paths stay the same.
#pragma once

#include "node/life/lifecycle.h"

namespace carve::node {

// Reads the ledger, adopts the live slices and ends the others. Must be called once before the agent serves.
// If the ledger is new or has lost its newest changes, the live slices are restored from the state files.
Outcome<void> adopt_slices(NodeState&, Lifecycle&);

}  // namespace carve::node
