// The command line of carve-sim: a command, followed by its arguments and options.
#pragma once

#include <exception>

#include "sim/tool/tool_verbs.h"

namespace carve::sim {

struct Command {
  int (*act)(const Arguments&);
  Arguments arguments;
};

// Returns the command with its arguments. Throws Usage for an unknown command or option. The command itself
// checks the values.
Command parse_command(int argc, char** argv);

// Prints the error and returns the exit status: 2 for an invalid command line, otherwise 1.
int complain(const std::exception& reason);

}  // namespace carve::sim
