// The command line of carve-sim: a verb, followed by its words and options.
#pragma once

#include <exception>

#include "sim/tool/tool_verbs.h"

namespace carve::sim {

struct Command {
  int (*act)(const Arguments&);
  Arguments arguments;
};

// Returns the verb with its arguments. Throws Usage for an unknown verb or option. The verb checks the
// values.
Command parse_command(int argc, char** argv);

// Prints the reason and returns the exit status: 2 for a wrong command line, else 1.
int complain(const std::exception& reason);

}  // namespace carve::sim
