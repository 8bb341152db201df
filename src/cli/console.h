// The address of the web console.
#pragma once

#include "client/client.h"
#include "wire/api/controller.h"

namespace carve::cli {

// Returns the address of the console with a new one-time code, with which a browser signs in as this user.
client::Answer<std::string> sign_in_address(const client::Client& controller);

}  // namespace carve::cli
