// Callbacks that serve the sockets of attach points. The owner of the agent's sockets sets both functions.
// Until then no attach point is served.
#pragma once

#include <functional>

#include "core/attach_point.h"
#include "os/fd.h"

namespace carve::node {

struct AttachListeners {
  std::function<void(const AttachPoint&, os::Fd listener)> open;  // Replaces an earlier listener.
  std::function<void(const AttachPoint&)> close;
};

}  // namespace carve::node
