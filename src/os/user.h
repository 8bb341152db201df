// The users of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace carve::os {

// Returns the user's name, or the uid as text if the user database does not have it.
std::string user_name(uint32_t uid);

// Returns the uid of a user; no value if there is no such user.
std::optional<uint32_t> user_id(const std::string& name);

}  // namespace carve::os
