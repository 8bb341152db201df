// Turns the API's documents into the agent's values: texts become devices, policies and sizes. A wrong text
// is refused with a sentence.
#pragma once

#include "http/caller.h"
#include "node/agent/agent.h"
#include "wire/api/slice.h"

namespace carve::node {

// The refusal of a text that is no slot's name.
tl::unexpected<Failure> no_slot(const std::string& word);

Outcome<Request> to_request(const Agent&, const api::SliceRequest&, const http::Caller&);

}  // namespace carve::node
