// Reads the files in /proc that a process can block. Its command line and environment are pages of its
// memory, which a FUSE file system may withhold; its mappings need the lock of its memory map, which a thread
// waiting for such a page holds. A reader may block until the process ends, so only the inspector's child
// process reads these files (node/inspect/inspector.h). On the agent's loop only /proc/PID/stat, status,
// cgroup and ns are read (os/process.h), which need neither.
#pragma once

#include <string>

#include "node/reconcile/bypass.h"
#include "os/process.h"

namespace carve::node {

struct Inspection {
  os::ProcessId process;
  int64_t at_ns = 0;    // CLOCK_MONOTONIC time of the result.
  bool ended = false;   // The process had already ended; the rest is empty.
  bool late = false;    // The read timed out. `evidence.unreadable` is set; the rest is empty.
  std::string command;  // Arguments, cut to 200 bytes. For a late process, its name in brackets.
  // The process's name (comm) before the files were read. It changes when the process executes another
  // program.
  std::string name;
  // True if the process has mappings but none of a report page. An ending process has no mappings for a while
  // before its files are closed and its device memory is freed; the value is then false.
  bool maps_no_report_page = false;
  ProcessEvidence evidence;
};

// Reads the files. May block for as long as the process wants.
Inspection inspect(const os::ProcessId&);

// Opens the report page that the process has mapped, which needs CAP_CHECKPOINT_RESTORE. Empty if it has
// none. May block for as long as the process wants.
os::Fd open_report_page(const os::ProcessId&);

// Returns the process's name in brackets ("[python3]") without blocking; empty if the process has ended.
std::string bracketed_name(pid_t);

}  // namespace carve::node
