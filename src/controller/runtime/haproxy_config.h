// The configuration of HAProxy for the endpoints of services: one frontend on its port and one backend for
// each service. The servers are in the text too, because a reload forgets those that were added at run time.
//
// HAProxy makes no health checks: only replicas that the controller found ready are servers. A server whose
// port refuses a connection is passed over (option redispatch, retry-on conn-failure), so a replica that is
// killed loses the requests that it was answering and no other.
#pragma once

#include <string>
#include <vector>

#include "controller/services/effects.h"

namespace carve::controller {

// Returns the name of an endpoint's frontend and backend: "endpoint-18000".
std::string endpoint_name(uint32_t port);

std::string haproxy_config(const std::vector<ServiceEndpoint>&, const std::string& admin_socket);

// One server as the admin socket shows it ("show stat", the CSV of HAProxy 2.6's management guide,
// section 9.1).
struct SeenServer {
  std::string backend;
  std::string name;
  uint32_t sessions = 0;  // Present ones and queued ones.
  bool is_ready = false;  // Neither draining nor in maintenance.
};
// Returns the servers of the CSV text. Lines of frontends and backends, and lines with missing columns, are
// left out.
std::vector<SeenServer> parse_servers(const std::string& csv);

// Returns the commands that make the seen servers those of the endpoints, in order: new servers are added and
// set ready, others are drained, and drained ones without sessions are deleted. An endpoint without a backend
// among `backends` needs a reload first.
std::vector<std::string> server_commands(const std::vector<ServiceEndpoint>& wanted,
                                         const std::vector<SeenServer>& seen);

}  // namespace carve::controller
