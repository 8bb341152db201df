// The processes of HAProxy: a master and its workers, which outlive the program that started them. They are
// children of init, in a session of their own, with the proxy's directory as their working directory.
//
// A started master is found again as the process that listens at its socket, which the kernel reports
// (SO_PEERPIDFD), and by its answer. Before the master executes, its boot id, process id and start time are
// on disk. So a master that does not answer yet, or no longer, is never joined by a second one: two would
// share the ports (SO_REUSEPORT), and each would get a part of the connections.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "controller/runtime/runtime_answer.h"
#include "controller/runtime/runtime_socket.h"

namespace carve::controller {

inline constexpr int64_t max_start_ns = 5 * os::second;    // Until a started or reloaded HAProxy serves.
inline constexpr int64_t max_silence_ns = 2 * os::second;  // While a reload executes the master again.
// HAProxy writes about 460 bytes for each reload, and each new endpoint of a user causes a reload.
inline constexpr int64_t max_proxy_log_bytes = 1 << 20;

class ProxyProcess {
 public:
  // `program` is a path, or a name that is looked up in PATH and in the system's folders.
  ProxyProcess(std::string directory, std::string program);

  // Returns the processes, or no value if HAProxy does not run. unavailable: it runs and does not answer.
  Outcome<std::optional<ProxyProcesses>> find() const;

  // Returns HAProxy's message about the first error in a file of the directory (invalid_argument). not_found:
  // HAProxy is not installed.
  Outcome<void> check_config(const std::string& file) const;

  // Starts HAProxy, which must not be running, with the configuration of the directory, and waits until it
  // serves.
  Outcome<void> start() const;

  // Replaces the worker by one with the current configuration, and waits until it serves. If the new one
  // cannot start, the old worker continues.
  Outcome<void> reload() const;

  // Ends HAProxy and all connections, and waits until it has ended.
  Outcome<void> stop() const;

  const RuntimeSocket& socket() const { return socket_; }

 private:
  void limit_log() const;
  std::string path(const char* file) const { return directory_ + "/" + file; }
  std::optional<os::ProcessId> recorded() const;
  Outcome<void> record(const os::ProcessId&) const;
  Outcome<os::ProcessId> launch(const std::string& program) const;
  tl::unexpected<Failure> not_started(const char* what) const;

  std::string directory_;
  std::string program_;
  RuntimeSocket socket_;  // The master's.
};

// Calls `done` every 10 ms until it returns true. Returns false when the time is over.
bool poll_until(int64_t most_ns, const std::function<bool()>& done);

// Returns the path of the program. not_found: it is not installed; the message names the Debian package.
Outcome<std::string> find_program(const std::string& name);

}  // namespace carve::controller
