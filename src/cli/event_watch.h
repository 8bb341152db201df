// `carve events --watch`: prints the kept events and then each new one, until Ctrl-C.
#pragma once

#include "cli/verbs.h"
#include "wire/api/event.h"

namespace carve::cli {

// Returns the event as one line for a user, without its end.
std::string line_of(const api::Event& event);

// Continues after a lost connection and a restart of the agent, and reports both on standard error. Ctrl-C
// ends the program with status 130.
void watch_events(Context& context);

}  // namespace carve::cli
