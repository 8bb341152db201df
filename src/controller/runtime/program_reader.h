// Reads the state that supervisors write about their programs, but only when it may have changed. The state
// of a running program does not change, so an idle controller makes no system call for it.
//
// The kernel reports changes in a program's directory (inotify): a replaced state, and the lock file, which
// the kernel closes when the supervisor ends. The lock may be released slightly after that report, so a
// directory counts as unchanged only 2 s after its last report. In any case each program is read once in 30
// s. If the kernel allows no further watch, a program is read every time.
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

  // Takes the kernel's reports. Reads before the next call may return the state as of now. `now_ns` is
  // monotonic.
  void take_reports(int64_t now_ns);
  Outcome<runner::SeenProgram> read(const std::string& name);
  // Drops a program whose directory was removed. Another program with its name gets a new directory.
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
