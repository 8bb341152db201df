// The output of a supervised program. Both streams go through pipes to a thread that writes the log, so the
// program is never stopped by a full disk: lines are then lost and counted (runner/log_files.h). The
// supervisor's own sentences are lines of the same log.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "os/fd.h"
#include "os/mutex.h"
#include "runner/log_files.h"

namespace carve::runner {

class ProgramOutput {
 public:
  // Opens the log in the folder, and the pipes.
  static Outcome<std::unique_ptr<ProgramOutput>> open(const std::string& folder);
  ~ProgramOutput();
  ProgramOutput(const ProgramOutput&) = delete;
  ProgramOutput& operator=(const ProgramOutput&) = delete;

  // Makes the pipes this process's standard output and error.
  void redirect();
  // Begins to read the pipes. Called when the program's process exists: a process that is made while another
  // thread runs could not use what that thread has locked.
  void begin();
  void add_line(const std::string& text) EXCLUDES(mutex_);
  // After redirect(): closes this process's ends of the pipes, and writes what is left in them. Descendants
  // of the program that live on may hold the other ends: their output is read for one more second.
  void finish();

 private:
  explicit ProgramOutput(LogWriter log) : log_(std::move(log)) {}
  void read_until_closed() EXCLUDES(mutex_);

  os::Mutex mutex_;
  LogWriter log_ GUARDED_BY(mutex_);
  os::Fd out_, err_;                // The reading ends.
  os::Fd out_to_log_, err_to_log_;  // The writing ends, until redirect().
  bool is_redirected_ = false;
  os::Fd finished_;  // An eventfd: readable after finish().
  std::thread reader_;
};

}  // namespace carve::runner
