// What the kernel shows of a process in files that the process can keep from being read: its command line and
// its environment are pages of its memory, which a FUSE file system may hold back, and its mappings need the
// lock of its memory map, which a thread waiting for such a page holds. A reader waits until the process
// ends, so only the inspector's child process reads these files (node/inspect/inspector.h). On the agent's
// loop only /proc/PID/stat, status, cgroup and ns are read (os/process.h), which need neither.
#pragma once

#include <string>

#include "node/reconcile/bypass.h"
#include "os/process.h"

namespace carve::node {

struct Inspection {
  os::ProcessId process;
  int64_t at_ns = 0;    // CLOCK_MONOTONIC, when the answer came.
  bool ended = false;   // The process ended meanwhile; the rest is empty.
  bool late = false;    // The kernel did not answer in time. `evidence.unreadable` is set; the rest is empty.
  std::string command;  // Its arguments, cut to 200 bytes. Of a late process: its name, in brackets.
  // The process has mappings, and none of a report page. A process that is ending has no mappings some time
  // before its files are closed and its device memory is freed; for it this is false.
  bool maps_no_report_page = false;
  ProcessEvidence evidence;
};

// Reads the files. Blocks for as long as the process wants.
Inspection inspect(const os::ProcessId&);

// Opens the report page that the process has mapped, which needs CAP_CHECKPOINT_RESTORE. Empty if it has
// none. Blocks for as long as the process wants.
os::Fd open_report_page(const os::ProcessId&);

// Returns the process's name in brackets ("[python3]"), without blocking; empty if it has ended.
std::string bracketed_name(pid_t);

}  // namespace carve::node
