// Runs a command that the user chose, such as the editor or the program that shows differences.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::cli {

// Returns the value of the first of these environment variables that is set and not empty, or `otherwise`.
std::string command_from(const std::vector<const char*>& variables, std::string otherwise);

// Runs the command with the arguments in the folder, with this process's terminal, and waits for its end. The
// shell splits `command` into words, so it may have options: "code --wait". Ctrl-C ends only the command.
// Returns its exit status as a shell reports it, or why it could not be started.
Result<int, std::string> run_user_command(const std::string& command,
                                          const std::vector<std::string>& arguments,
                                          const std::string& folder);

}  // namespace carve::cli
