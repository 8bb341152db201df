// Accepts the command line in the ways in which kubectl's users write it: options before the verb, `help
// VERB`, mistyped verbs, and completion. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::kubernetes::cli {

// Returns the words with the verb first. `help VERB` becomes `VERB --help`. Fails with a message if the verb
// is unknown.
Result<std::vector<std::string>, std::string> arranged(std::vector<std::string> words,
                                                       const std::vector<std::string>& verbs);

// kubectl runs the program kubectl_complete-carve for `kubectl carve <TAB>`.
inline constexpr const char* completion_script =
    "#!/bin/sh\n"
    "# Completes `kubectl carve`. Save it as kubectl_complete-carve in a folder of PATH and make it "
    "executable.\n"
    "exec kubectl-carve __complete \"$@\"\n";

// Returns the candidates that begin with the prefix in the format of kubectl: one per line, and a last line
// that prevents the completion of file names.
std::string completions(std::vector<std::string> candidates, const std::string& prefix);

}  // namespace carve::kubernetes::cli
