// The sockets that accept TCP connections to a port of 127.0.0.1, as the kernel lists them (sock_diag(7)). No
// privilege is needed. The list is that of this process's network namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/failure.h"

namespace carve::os {

struct Listener {
  uint64_t cookie = 0;             // Unique among all sockets of this boot.
  uint32_t inode = 0;              // /proc/PID/fd/N is "socket:[INODE]".
  uint32_t uid = 0;                // The uid of the process that created it.
  std::optional<uint64_t> cgroup;  // Inode of the cgroup (v2) in which it was created; since Linux 5.9.
};

Outcome<std::vector<Listener>> loopback_listeners(uint16_t port);

}  // namespace carve::os
