// What the API's documents ask for, as the agent's values: words become devices, policies, sizes, or a
// sentence.
#pragma once

#include "node/agent/agent.h"
#include "wire/api/documents.h"

namespace carve::node {

Outcome<Policy> policy_named(const std::string& word);

Outcome<Request> to_request(const Agent&, const api::SliceRequest&, uint32_t owner);

}  // namespace carve::node
