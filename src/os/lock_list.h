// Reads /proc/locks, the kernel's list of all file locks. Any user can make it long, so programs with a loop
// read it in a worker. wire/shm/shared_blocks.h describes which locks a single reading may miss.
#pragma once

#include <cstddef>
#include <functional>

namespace carve::os {

// Calls `piece(text, size)` for each piece of the list. The first piece has at most `first` bytes, the others
// at most a page. Returns false if the list cannot be read or is longer than 64 MiB (500,000 locks).
bool read_lock_list(size_t first, const std::function<void(const char*, size_t)>& piece);

}  // namespace carve::os
