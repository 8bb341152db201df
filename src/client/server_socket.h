// Connects the socket of a call. Requires a server that this process trusts (os/server_identity.h), and waits
// if the server's queue is full.
#pragma once

#include <chrono>
#include <string>

#include "client/client.h"
#include "os/fd.h"

namespace carve::client {

// Connects within the time that the settings allow.
Answer<os::Fd> connect_to_server(const std::string& socket, const Settings&);

// Returns the problem for a server that cannot be reached, with the errno of the attempt.
api::Problem unreachable(const std::string& socket, int error, const Settings&);

// Returns the problem for a server that did not respond within this time.
api::Problem no_response(const std::string& socket, std::chrono::seconds waited);

}  // namespace carve::client
