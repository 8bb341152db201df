// Changes the terms of a running slice. Its processes see the new terms at their next allocation or lease.
//
// Memory can grow if the device has enough free memory, and can shrink to the bytes in use. The following
// order avoids a race with allocations: the agent writes the new quota first and reads the bytes in use
// afterwards. An allocation that read the old quota reads it again after its charge (guest/quota/charge.cc).
// So either the agent notices the charge and restores the old quota, or the process notices the new quota and
// releases the charge.
//
// The ledger is written first. After a crash, adoption fills the control page from the ledger.
#pragma once

#include "node/agent/agent.h"
#include "node/slice/node_state.h"

namespace carve::node {

// Checks new terms by themselves and against each of the slice's devices.
Outcome<void> may_have(const NodeState&, const LiveSlice&, const ledger::Terms&, const TermsUpdate& asked);

Outcome<void> update_terms(NodeState&, LiveSlice&, const TermsUpdate&, const std::string& by);

}  // namespace carve::node
