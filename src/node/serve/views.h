// The agent's state as the API's documents.
#pragma once

#include <functional>

#include "node/agent/agent.h"
#include "wire/api/documents.h"

namespace carve::node {

// Whose slices the one who looks may know of; of others no name is told.
using MaySee = std::function<bool(const ledger::Use&)>;

api::Node view_node(const Agent&, const MaySee&);
api::Device view(const Agent&, const NodeDevice&, const MaySee&);
api::Slice view(const Agent&, const Tenant&, bool whole, const MaySee&);
api::Slice view(const Agent&, const ledger::Use& ended, bool whole);
api::Diagnosis diagnose(const Agent&);

}  // namespace carve::node
