// The steps of main(): what each of its sentences calls.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/api/controller_routes.h"
#include "controller/controller_options.h"
#include "controller/known_nodes.h"
#include "os/fd.h"

namespace carve::controller {

// Returns the user's environment.
Surroundings surroundings();

// Prints the sentence and returns the exit status: 2 for a wrong command line, else 1.
int complain(const Failure&);

// Prints the help, the version or the completion; returns the exit status.
int print(Options::Mode);

// Makes SIGTERM and SIGINT readable from a descriptor, for this thread and those that it starts. SIGPIPE is
// ignored, so a closed connection does not end the controller.
os::Fd take_signals();

struct Locks {
  os::Fd state, socket;
};
// Makes the directories, and locks the state and the socket for the life of the process.
Outcome<Locks> lock(const Options&);

struct Database {
  ControllerStore store;
  std::vector<NodeRecord> nodes;
};
// Opens controller.db and reads it. A damaged file is moved aside, with an error in the log.
Outcome<Database> open_database(const Options&);

// The API with its sockets. A caller on the unix socket is identified by the kernel; root and the
// controller's own user are operators. A caller over TCP is anonymous.
class Api : Views {
 public:
  static Outcome<std::unique_ptr<Api>> open(os::Loop&, const KnownNodes&, const Options&);

  api::ControllerVersion version() const override { return version_; }
  api::KnownNodeList nodes() const override { return nodes_.document(); }

 private:
  Api(os::Loop&, const KnownNodes&, const Options&, os::Fd unix_socket, os::Fd tcp_socket);

  const KnownNodes& nodes_;
  const api::ControllerVersion version_;
  const std::vector<uint32_t> operators_;
  std::optional<http::Server> unix_, tcp_;
};

// Runs the loop until a signal comes. Returns the exit status.
int serve(os::Loop&, const os::Fd& signals, KnownNodes&, const Options&);

}  // namespace carve::controller
