// Whether the process that listens at a replica's port belongs to the replica. Any local user can listen at a
// port before a slow program does, and a program can use it by accident; its responses must not make the
// replica ready.
//
// The replica's processes are those below its supervisor, which adopts orphans (runner/runner.cc). A listener
// belongs to the replica if one of them has its socket open. The controller may not inspect processes of
// another user; then the socket's cgroup and user decide.
#pragma once

#include <map>
#include <string>

#include "os/listeners.h"
#include "os/process.h"

namespace carve::controller {

struct PortOwner {
  enum class Kind : uint8_t {
    none,     // No process listens there.
    program,  // All listeners belong to the replica.
    other,
    unknown,  // It cannot be determined.
  };
  Kind kind = Kind::none;
  std::string message;  // Set for other and unknown.
};

// One thread uses it. A call reads /proc, so it may block; a listener that was recognised is not looked up
// again.
class PortOwners {
 public:
  PortOwner owner_of(uint16_t port, const os::ProcessId& supervisor);

 private:
  PortOwner look_up(uint16_t port, const os::Listener&, const os::ProcessId& supervisor);

  std::map<uint64_t, os::ProcessId> known_;  // Supervisor, keyed by the cookie of a listener.
};

}  // namespace carve::controller
