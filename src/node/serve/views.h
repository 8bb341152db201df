// The agent's state as the API's documents.
#pragma once

#include "node/agent/agent.h"
#include "wire/api/documents.h"

namespace carve::node {

api::Device view(const Agent&, const NodeDevice&);
api::Slice view(const Agent&, const Tenant&, bool whole);
api::Slice view(const Agent&, const ledger::Use& ended, bool whole);
api::Diagnosis diagnose(const Agent&);

}  // namespace carve::node
