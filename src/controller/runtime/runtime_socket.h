// HAProxy's command line on a unix socket: the admin socket of a worker, and the master socket, which also
// passes commands to its workers ("@!PID COMMAND"). One connection carries one command. HAProxy closes the
// connection after the answer, on the master socket only if the writing side was shut down before.
#pragma once

#include <string>

#include "core/failure.h"
#include "os/clock.h"
#include "os/process.h"

namespace carve::controller {

inline constexpr size_t max_answer_bytes = 16
                                           << 20;  // `show stat` of 256 services with 128 servers has 9 MiB.

class RuntimeSocket {
 public:
  explicit RuntimeSocket(std::string path, int64_t patience_ns = 2 * os::second)
      : path_(std::move(path)), patience_ns_(patience_ns) {}

  // Returns the answer to one command, as HAProxy sent it.
  // invalid_argument: the command has a character that would begin another command. not_found: no process
  // listens. unavailable: there was no complete answer within the time, or it is too large.
  Outcome<std::string> ask(std::string_view command) const;

  // Returns the process that listens, or not_found if there is none.
  Outcome<os::ProcessId> listener() const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int64_t patience_ns_;  // The longest time until a command has its answer.
};

}  // namespace carve::controller
