// What HAProxy is told next: plan() compares the endpoints that are desired with the servers of the present
// worker and returns the commands in their order. It keeps no state: a command whose effect is observed is
// not returned again, so a caller that was killed between two commands continues.
//
// A new endpoint, and an endpoint whose port has changed, need a reload. Servers never do: they are added,
// drained and removed at run time. After a reload the new worker has the desired servers only; requests at
// the others end in the old worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

enum class ServerState : uint8_t {
  ready,
  drain,  // Gets no new request.
  maint,  // Maintenance: gets no request. HAProxy removes a server in this state only.
};

struct ProxyServer {
  ServerState state = ServerState::ready;
  uint64_t weight = 1;
  uint64_t sessions = 0;  // Requests, streams and tunnels that are open or queued in this worker.

  friend bool operator==(const ProxyServer&, const ProxyServer&) = default;
};

// What one worker of HAProxy has.
struct ProxyObserved {
  std::string frame;  // frame_of() of the configuration that it has loaded.
  // By the names of endpoint_config.h. A backend without servers has an empty map.
  std::map<std::string, std::map<std::string, ProxyServer>> backends;
};

struct ProxyAction {
  enum class Kind : uint8_t {
    reload,  // Names no server.
    add_server,
    set_weight,
    set_ready,
    set_drain,
    set_maint,
    remove_server,
  };
  Kind kind;
  std::string proxy = {};   // NAMESPACE:SERVICE
  std::string server = {};  // REPLICA.PORT
  uint16_t port = 0;        // For add_server.
  unsigned weight = 0;      // For add_server and set_weight.

  friend bool operator==(const ProxyAction&, const ProxyAction&) = default;
};

// Returns what to do next. A reload is returned alone, because it leaves nothing else to do. Servers are
// added before others are drained, so that a rollout never leaves an endpoint empty. The endpoints are
// checked; `frame` is theirs (frame_of()).
std::vector<ProxyAction> plan(const std::vector<DesiredEndpoint>& desired, const std::string& frame,
                              const ProxyObserved& observed);

}  // namespace carve::controller
