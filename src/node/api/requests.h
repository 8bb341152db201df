// Converts the API's documents into the agent's values: texts become devices, policies and sizes. An invalid
// text is refused with a message.
#pragma once

#include "http/caller.h"
#include "node/agent/agent.h"
#include "wire/api/slice.h"

namespace carve::node {

// The refusal of an invalid slot name.
tl::unexpected<Failure> no_slot(const std::string& word);

Outcome<Request> to_request(const Agent&, const api::SliceRequest&, const http::Caller&);

}  // namespace carve::node
