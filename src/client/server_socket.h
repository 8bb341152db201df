// The connected socket of a call. It requires a server that this process trusts (os/server_identity.h), and
// waits for a server whose queue is full.
#pragma once

#include <chrono>
#include <string>

#include "client/client.h"
#include "os/fd.h"

namespace carve::client {

// Connects within the patience of the settings.
Answer<os::Fd> connect_to_server(const std::string& socket, const Settings&);

// Returns the problem of a server that cannot be reached, with an errno.
api::Problem unreachable(const std::string& socket, int error, const Settings&);

// Returns the problem of a server that did not respond within this time.
api::Problem no_response(const std::string& socket, std::chrono::seconds waited);

}  // namespace carve::client
