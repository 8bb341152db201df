// The files that users name on a command line.
#pragma once

#include <string>

#include "base/result.h"

namespace carve::os {

// Returns the text of the file, or of standard input for "-". Fails with a message that begins with the
// file's name if it cannot be read, is a directory, or has more than `most` bytes.
Result<std::string, std::string> read_input(const std::string& file, size_t most);

}  // namespace carve::os
