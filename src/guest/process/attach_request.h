// The guest library's half of attaching (wire/shm/attach.h, FORMAT.md). It sends one request, checks every
// word of the reply, maps the three pages and closes every descriptor. An attach takes about 60 us.
#pragma once

#include <cstdint>
#include <span>

#include "wire/shm/attach.h"
#include "wire/shm/layout.h"

namespace carve::guest {

struct SharedMemory {
  const shm::Control* control;
  shm::Report* report;
  const shm::Heartbeat* heartbeat;
  uint16_t slot;
};

// The time that the first cuInit of a process waits if the agent is not running. A crashed agent is back
// after 0.1 s, and an agent's container after kubelet's first back-off, which is 10 s.
inline constexpr int64_t attach_patience_ns = 30'000'000'000;

enum class AttachResult { attached, not_in_slice, refused, unreachable };

// Checks a reply before anything is mapped and returns its result: `unreachable` if a retry may help,
// `refused` for a reply that breaks the rules. `descriptors` is the number received.
AttachResult judge(const shm::AttachReply& reply, size_t size, size_t descriptors);

// Sends one request and reads one reply over a connected socket, by `deadline` (CLOCK_MONOTONIC ns). Leaves
// no descriptor open except the connection, which belongs to the caller.
AttachResult converse(int connection, shm::Guest guest, int64_t deadline, SharedMemory* pages);

// Returns whether a server with these credentials, as SO_PEERCRED reports them, is outside this process's
// user namespace and therefore has no uid there, like an agent of the host for a container. `uid_map` and
// `overflow_uid` are the texts of /proc/self/uid_map and /proc/sys/kernel/overflowuid. A process inside a
// namespace that has the overflow uid is in the pid namespace too.
bool is_outside(uint32_t uid, int pid, const char* uid_map, const char* overflow_uid);

// Unmaps the pages. Called if another thread has attached in the meantime.
void unmap(const SharedMemory& pages);

// Sends a request to the agent at `path` every 50 ms until it replies or `patience_ns` have passed. `pages`
// is set if the result is `attached`. A path too long for a socket address is immediately unreachable. A wait
// of more than 2 s is reported on standard error, once when it begins and again if it ends without a reply.
AttachResult attach(const char* path, shm::Guest guest, int64_t patience_ns, SharedMemory* pages);

}  // namespace carve::guest
