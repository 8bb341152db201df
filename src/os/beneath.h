// Opens a file below a folder, for paths that a caller chose. No path can leave the folder: "..", absolute
// paths and symbolic links are rejected, even if a folder is replaced by a link in the meantime.
#pragma once

#include <optional>
#include <string>

#include "os/fd.h"

namespace carve::os {

// Opens for reading, without waiting for the writer of a FIFO. Returns no descriptor, with errno set, if
// there is no such file. Uses openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS (Linux 5.6), or
// walk_beneath() if the kernel or a seccomp filter refuses that call.
Fd open_beneath(int folder, const std::string& path);

// Returns the first `max_bytes` of a regular file, or no value, with errno set, if there is no such file or
// it is another kind of file.
std::optional<std::string> read_beneath(int folder, const std::string& path, size_t max_bytes);

// Does the same as open_beneath() with one openat(2) with O_NOFOLLOW per component.
Fd walk_beneath(int folder, const std::string& path);

}  // namespace carve::os
