// Converts the API's documents to the agent's values: texts become devices, policies and sizes. Invalid texts
// are rejected with a message.
#pragma once

#include "http/caller.h"
#include "node/agent/agent.h"
#include "wire/api/slice.h"

namespace carve::node {

// Returns the rejection of an invalid slot name.
tl::unexpected<Failure> no_slot(const std::string& word);

Outcome<Request> to_request(const Agent&, const api::SliceRequest&, const http::Caller&);

}  // namespace carve::node
