// Adopts the slices of an earlier agent. The ledger has the expected slices, state files and shared memory
// the earlier state, the kernel the living processes. Programs are not disturbed: shared memory, cgroups and
// socket paths are unchanged.
#pragma once

#include "node/slice/lifecycle.h"

namespace carve::node {

// Reads the ledger, adopts the living slices and ends the others. Call it once, before the agent serves. If
// the ledger is new or has lost its newest changes, its living part comes from the state files.
Outcome<void> adopt_slices(NodeState&, Lifecycle&);

}  // namespace carve::node
