// What the kernel shows of a process that is not attached (node/reconcile/bypass.h decides on it).
#pragma once

#include <sys/types.h>

#include "node/reconcile/bypass.h"

namespace carve::node {

// Reads /proc; a process that has ended gives the evidence of a static program.
ProcessEvidence evidence_of(pid_t);

// Returns whether the process is this machine's nvidia-cuda-mps-server.
bool is_mps_server(pid_t);

}  // namespace carve::node
