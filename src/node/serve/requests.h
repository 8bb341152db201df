// Turns the API's documents into the agent's values: texts become devices, policies and sizes. A wrong text
// is refused with a sentence.
#pragma once

#include "node/agent/agent.h"
#include "wire/api/slice.h"

namespace carve::node {

Outcome<Request> to_request(const Agent&, const api::SliceRequest&, uint32_t owner);

}  // namespace carve::node
