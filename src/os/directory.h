// The directories of a program that runs once: each is made at its start, a lock file in it names the process
// that uses it, and small files in it are replaced as a whole.
#pragma once

#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::os {

// Creates a directory and its parents if they are missing. `mode` is that of mkdir.
Outcome<void> make_directory(const std::string& path, unsigned mode);

// Replaces the file in one step, so that after a power loss it has either the old or the new text. On failure
// nothing was changed. `mode` is that of open(2).
Outcome<void> replace_file(const std::string& path, const std::string& text, unsigned mode = 0600);

// Takes a lock for the life of the process. The failure names the process that holds it; `holder` says what
// it is ("agent"), and `what` what it has ("the state /var/lib/carve").
Outcome<Fd> hold_lock(const std::string& path, const std::string& holder, const std::string& what,
                      unsigned mode = 0600);

}  // namespace carve::os
