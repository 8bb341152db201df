// The library's half of becoming a slice (wire/shm/attach.h, FORMAT.md): ask once, check every word of the
// answer as strictly as the agent checks ours, map the three pages, close every descriptor. About 60 us.
#pragma once

#include <cstdint>
#include <span>

#include "wire/shm/attach.h"
#include "wire/shm/layout.h"

namespace carve::guest {

struct Pages {
  const shm::Control* control;
  shm::Report* report;
  const shm::Heartbeat* heartbeat;
  uint16_t slot;
};

enum class Outcome { attached, not_in_slice, refused, unreachable };

// What a reply means, before anything is mapped: `unreachable` where it is worth asking again, `refused` for
// a reply that breaks the rules. `descriptors` is how many came along.
Outcome judge(const shm::AttachReply& reply, size_t size, size_t descriptors);

// One question and one answer over a connected socket, by `deadline` (CLOCK_MONOTONIC ns). Leaves no
// descriptor open but the connection, which stays the caller's.
Outcome converse(int connection, shm::Guest guest, int64_t deadline, Pages* pages);

// Gives the mappings back, where somebody else asked too.
void unmap(const Pages& pages);

// Asks the agent at `path` until it answers or `patience_ns` have passed, every 50 ms. `pages` is set where
// the outcome is `attached`. A path too long for a socket address is unreachable at once.
Outcome attach(const char* path, shm::Guest guest, int64_t patience_ns, Pages* pages);

}  // namespace carve::guest
