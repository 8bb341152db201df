// The output of a supervised program. Both streams go through pipes to a thread that writes the log, so that
// a full disk never blocks the program: lines are then lost and counted (runner/log_files.h). The
// supervisor's own messages are written to the same log.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "os/fd.h"
#include "os/mutex.h"
#include "os/wakeup.h"
#include "runner/log_files.h"

namespace carve::runner {

class ProgramOutput {
 public:
  // Opens the log in the folder and creates the pipes.
  static Outcome<std::unique_ptr<ProgramOutput>> open(const std::string& folder);
  ~ProgramOutput();
  ProgramOutput(const ProgramOutput&) = delete;
  ProgramOutput& operator=(const ProgramOutput&) = delete;

  // Redirects this process's standard output and error to the pipes.
  void redirect();
  // Starts to read the pipes. Call it after the program's process has been forked: a process that is forked
  // while another thread runs could not use locks that the thread holds.
  void begin();
  void add_line(const std::string& text) EXCLUDES(mutex_);
  // Must be called after redirect(). Closes this process's ends of the pipes and writes the data left in
  // them. Surviving descendants of the program may hold the other ends, so their output is read for one more
  // second.
  void finish();
  // Returns the last line of standard error or of the supervisor, truncated. Empty if there was none.
  std::string last_error() EXCLUDES(mutex_);

 private:
  explicit ProgramOutput(LogWriter log) : log_(std::move(log)) {}
  void read_until_closed() EXCLUDES(mutex_);

  os::Mutex mutex_;
  LogWriter log_ GUARDED_BY(mutex_);
  os::Fd out_, err_;                // The read ends.
  os::Fd out_to_log_, err_to_log_;  // The write ends, until redirect().
  bool is_redirected_ = false;
  const os::Wakeup finished_;  // Set by finish().
  std::thread reader_;
};

}  // namespace carve::runner
