// The directories of a program that runs only once per directory. Each is created when the program starts,
// contains a lock file that names the process that uses it, and contains small files that are replaced as a
// whole.
#pragma once

#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::os {

// Creates a directory and its parents if they are missing. `mode` is that of mkdir. An existing directory
// must belong to this user or to root, and no other user may be able to write to it. A directory like /tmp,
// where users cannot replace files of others, is allowed.
Outcome<void> make_directory(const std::string& path, unsigned mode);

// Replaces the file in one step, so that after a power loss it contains either the old or the new text. If
// this fails, nothing is changed. `mode` is that of open(2).
Outcome<void> replace_file(const std::string& path, const std::string& text, unsigned mode = 0600);
// Does the same without waiting for the disk, for a file that is not needed after a power loss, which may
// leave it empty.
Outcome<void> replace_unsynced_file(const std::string& path, const std::string& text, unsigned mode = 0600);

// Takes a lock for the life of the process. The failure names the process that holds it; `holder` is its kind
// ("agent"), and `what` is what it holds ("the state /var/lib/carve").
Outcome<Fd> hold_lock(const std::string& path, const std::string& holder, const std::string& what,
                      unsigned mode = 0600);
// Does the same, but waits up to this time for another process to end. A killed process keeps its locks until
// the kernel has closed its descriptors, some milliseconds after its socket stops accepting connections.
inline constexpr int64_t lock_patience_ns = 2'000'000'000;
Outcome<Fd> wait_for_lock(const std::string& path, const std::string& holder, const std::string& what,
                          int64_t patience_ns = lock_patience_ns);

}  // namespace carve::os
