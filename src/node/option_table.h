// The table of carved's options. The help, the parsing and the completion read it (options.cc).
#pragma once

#include <vector>

#include "node/options.h"
#include "os/command_line.h"

namespace carve::node {

using OptionRow = os::OptionRow<Options>;

// The options that start no agent come first: if one of them is given, the rest of the line does not matter.
extern const std::vector<OptionRow> option_rows;

}  // namespace carve::node
