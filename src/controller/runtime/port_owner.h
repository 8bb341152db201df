// Determines whether the process that listens on a replica's port belongs to the replica. Any local user can
// listen on the port before a slow program does, and a program can use it by accident. Responses of such a
// process must not make the replica ready.
//
// The replica's processes are those below its supervisor, which adopts orphans (runner/runner.cc). A listener
// belongs to the replica if one of them has its socket open. If the controller may not inspect the processes
// of another user, the socket's cgroup and user decide.
#pragma once

#include <map>
#include <string>

#include "os/listeners.h"
#include "os/process.h"

namespace carve::controller {

struct PortOwner {
  enum class Kind : uint8_t {
    none,     // No process listens on the port.
    program,  // All listeners belong to the replica.
    other,
    unknown,  // It cannot be determined.
  };
  Kind kind = Kind::none;
  std::string message;  // Set for other and unknown.
};

// Used by one thread. A call reads /proc, so it may block; a listener that was recognized is not looked up
// again.
class PortOwners {
 public:
  PortOwner owner_of(uint16_t port, const os::ProcessId& supervisor);

 private:
  PortOwner look_up(uint16_t port, const os::Listener&, const os::ProcessId& supervisor);

  std::map<uint64_t, os::ProcessId> known_;  // Supervisors, keyed by the listener's socket cookie.
};

}  // namespace carve::controller
