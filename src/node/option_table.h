// The table of carved's options, which is used for the help, the parsing and the completion (options.cc).
#pragma once

#include <vector>

#include "node/options.h"
#include "os/command_line.h"

namespace carve::node {

using OptionRow = os::OptionRow<Options>;

// Options that start no agent come first: if one of them is given, the rest of the command line is ignored.
extern const std::vector<OptionRow> option_rows;

}  // namespace carve::node
