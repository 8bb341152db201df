// The processes of HAProxy: a master and its workers, which outlive the program that started them. They are
// children of init, in a session of their own, with the proxy's directory as their working directory.
//
// A running master is identified by the kernel as the process that listens on its socket (SO_PEERPIDFD), and
// by its answer. Before the master is executed, its boot id, process id and start time are written to disk.
// So no second master is ever started next to one that does not answer yet or no longer answers: two masters
// would share the ports (SO_REUSEPORT), and each would get a part of the connections.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "controller/runtime/runtime_answer.h"
#include "controller/runtime/runtime_socket.h"

namespace carve::controller {

inline constexpr int64_t max_start_ns = 5 * os::second;    // From the start or reload until HAProxy serves.
inline constexpr int64_t max_silence_ns = 2 * os::second;  // While the master re-executes itself.
// HAProxy writes about 460 bytes per reload, and each new endpoint of a user causes a reload.
inline constexpr int64_t max_proxy_log_bytes = 1 << 20;

class ProxyProcess {
 public:
  // `program` is a path, or a name that is searched in PATH and in the system's folders.
  ProxyProcess(std::string directory, std::string program);

  // Returns the processes; no value if HAProxy is not running. Fails with unavailable if it runs but does not
  // answer.
  Outcome<std::optional<ProxyProcesses>> find() const;

  // Returns HAProxy's message about the first error in a file of the directory (invalid_argument). Fails with
  // not_found if HAProxy is not installed.
  Outcome<void> check_config(const std::string& file) const;

  // Starts HAProxy, which must not be running, with the configuration in the directory, and waits until it
  // serves.
  Outcome<void> start() const;

  // Replaces the worker by one with the current configuration and waits until it serves. If the new worker
  // cannot start, the old one continues.
  Outcome<void> reload() const;

  // Ends HAProxy and all connections, and waits until HAProxy has exited.
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
  RuntimeSocket socket_;  // Socket of the master.
};

// Calls `done` every 10 ms until it returns true. Returns false if the time limit passes.
bool poll_until(int64_t most_ns, const std::function<bool()>& done);

// Returns the path of the program. Fails with not_found if it is not installed; the message names the Debian
// package.
Outcome<std::string> find_program(const std::string& name);

}  // namespace carve::controller
