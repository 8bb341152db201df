// The users of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/event_budget.h"

namespace carve::os {

// Returns the user's name, or the uid as text if the uid is not in the user database.
std::string user_name(uint32_t uid);

// Returns the uid of a user, or no value if there is no such user.
std::optional<uint32_t> user_id(const std::string& name);

// Returns the id of a group, or no value if there is no such group. May block, because the group database may be
// on another machine.
std::optional<uint32_t> group_id(const std::string& name);

// Returns "root" or "uid 1000", for logs and messages.
std::string uid_text(uint32_t uid);

// Returns the cause of log lines that the user causes. Root and this program's user have a reserved budget
// (core/event_budget.h).
Cause cause_of_user(uint32_t uid);

}  // namespace carve::os
