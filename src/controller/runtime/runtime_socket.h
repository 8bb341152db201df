// HAProxy's command line on a unix socket: the admin socket of a worker, and the master socket, which also
// passes commands to its workers ("@!PID COMMAND"). Each connection carries one command. HAProxy closes the
// connection after the answer; on the master socket it does so only if the client has shut down its writing
// side.
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

  // Returns the answer to one command, as HAProxy sent it. Fails with invalid_argument if the command
  // contains a character that would begin another command, with not_found if no process listens, and with
  // unavailable if no complete answer arrives in time or the answer is too large.
  Outcome<std::string> ask(std::string_view command) const;

  // Returns the process that listens. Fails with not_found if there is none.
  Outcome<os::ProcessId> listener() const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int64_t patience_ns_;  // Maximum time for a command's answer.
};

}  // namespace carve::controller
