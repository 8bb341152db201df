// Reads the state that the supervisors wrote about their programs, again only if it may have changed. A
// running program changes nothing, so an idle controller makes no system call for it.
//
// The kernel reports changes in a program's directory (inotify): a replaced state, and the lock file, which
// the kernel closes when the supervisor ends. The lock may become free a moment after that report, so a
// directory counts as unchanged 2 s after its last report. Each program is read once in 30 s in any case. If
// the kernel grants no watch, each program is read every time.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/failure.h"
#include "os/fd.h"
#include "runner/supervisor_state.h"

namespace carve::controller {

class ProgramReader {
 public:
  // `folder` contains the programs' directories.
  explicit ProgramReader(std::string folder);

  std::string directory_of(const std::string& name) const { return folder_ + "/" + name; }

  // Takes the kernel's reports. A read before the next call may return the state of this moment. `now_ns` is
  // monotonic.
  void take_reports(int64_t now_ns);
  Outcome<runner::SeenProgram> read(const std::string& name);
  // Forgets a program whose directory is removed; another program of its name gets another directory.
  void forget(const std::string& name);

  uint64_t reads() const { return reads_; }  // Number of files read.

 private:
  struct Known {
    int watch = -1;  // -1 if there is none.
    int64_t reported_ns = 0;
    int64_t read_ns = 0;
    std::optional<runner::SeenProgram> seen;
  };

  void take(const char* reports, size_t size);
  int watched(const std::string& name) const;

  const std::string folder_;
  const os::Fd reports_;
  int64_t now_ns_ = 0;
  uint64_t reads_ = 0;
  std::map<std::string, Known> known_;
  std::map<int, std::string> names_;  // Keyed by watch.
};

}  // namespace carve::controller
