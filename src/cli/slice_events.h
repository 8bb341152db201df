// Selects the events of one slice from those of the agent.
#pragma once

#include <string_view>
#include <vector>

#include "wire/api/event.h"

namespace carve::cli {

// Returns the events of the last slice that had the name, or with `all_lives` of every slice that had it.
std::vector<api::Event> events_of_slice(const std::vector<api::Event>&, std::string_view name,
                                        bool all_lives);

}  // namespace carve::cli
