// The next commands to HAProxy: plan() compares the desired endpoints with the servers of the current worker
// and returns the commands in order. It keeps no state: a command whose effect is observed is not returned
// again, so a caller that was killed between two commands can continue.
//
// A new endpoint, and an endpoint whose port has changed, need a reload. Servers never do: they are added,
// drained and removed at run time. After a reload the new worker has only the desired servers; requests to
// the others end in the old worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

enum class ServerState : uint8_t {
  ready,
  drain,  // The server gets no new requests.
  maint,  // Maintenance: the server gets no requests. HAProxy removes servers only in this state.
};

struct ProxyServer {
  ServerState state = ServerState::ready;
  uint64_t weight = 1;
  uint64_t sessions = 0;  // Requests, streams and tunnels that are open or queued in this worker.

  friend bool operator==(const ProxyServer&, const ProxyServer&) = default;
};

// The state of one worker of HAProxy.
struct ProxyObserved {
  std::string frame;  // Digest of its loaded configuration, see frame_of().
  // Keyed by names as in endpoint_config.h. A backend without servers has an empty map.
  std::map<std::string, std::map<std::string, ProxyServer>> backends;
};

struct ProxyAction {
  enum class Kind : uint8_t {
    reload,  // Applies to the whole worker.
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

// Returns the next actions. A reload is always the only action, because it includes all others. Servers are
// added before others are drained, so that a rollout never leaves an endpoint empty. The endpoints must be
// valid; `frame` is their frame_of().
std::vector<ProxyAction> plan(const std::vector<DesiredEndpoint>& desired, const std::string& frame,
                              const ProxyObserved& observed);

}  // namespace carve::controller
