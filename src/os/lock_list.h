// Reads /proc/locks, the kernel's list of all file locks. Any user can make it long, so programs with a loop
// read it in a worker. See wire/shm/shared_blocks.h for what a single reading may miss.
#pragma once

#include <cstddef>
#include <functional>

namespace carve::os {

// Calls `piece(text, size)` for the whole list, the first time with at most `first` bytes, then with at most
// a page. Returns false if the list cannot be read or is longer than 64 MiB (500,000 locks).
bool read_lock_list(size_t first, const std::function<void(const char*, size_t)>& piece);

}  // namespace carve::os
