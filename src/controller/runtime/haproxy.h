// HAProxy as the data path of the services' endpoints. It is started at the first endpoint, outlives the
// controller, and is found again through its pid file and its admin socket: a restart of the controller
// closes no connection. A new endpoint is a reload; servers come and go through the admin socket.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/runtime/haproxy_config.h"
#include "core/failure.h"

namespace carve::controller {

class HaProxy {
 public:
  // `folder` is for its configuration, pid file and admin socket; it exists.
  explicit HaProxy(std::string folder);

  // Makes the endpoints those of the list. It may be called often: without a difference, and without servers
  // that drain, nothing is sent.
  Outcome<void> publish(const std::vector<ServiceEndpoint>&);
  // Returns what HAProxy does with each server, by its name.
  Outcome<std::map<std::string, workload::EndpointState>> states();
  // Ends HAProxy; connections are closed.
  void end();

 private:
  bool is_running() const;
  Outcome<void> run(const std::vector<ServiceEndpoint>&);      // Starts it, or loads the new configuration.
  Outcome<std::string> ask(const std::string& command) const;  // On the admin socket.
  Outcome<std::vector<SeenServer>> servers() const;
  Outcome<std::vector<std::string>> frontends() const;

  std::string folder_, config_, pid_file_, admin_socket_;
  std::vector<ServiceEndpoint> published_;
  bool is_known_ = false;  // `published_` is what HAProxy has.
  bool drains_ = false;    // A server was draining at the last look.
};

}  // namespace carve::controller
