#include "controller/runtime/endpoint_plan.h"

#include <set>

#include "controller/runtime/endpoint_config.h"

namespace carve::controller {
namespace {

using Kind = ProxyAction::Kind;
using ServersByName = std::map<std::string, ProxyServer>;

// Adds the steps after which the server gets requests.
void serve(const std::string& proxy, const DesiredServer& desired, const ServersByName& observed,
           std::vector<ProxyAction>& out) {
  const std::string name = server_name(desired.replica, desired.port);
  const auto found = observed.find(name);
  if (found == observed.end()) {
    out.push_back({Kind::add_server, proxy, name, desired.port, desired.weight});
    out.push_back({Kind::set_ready, proxy, name});
    return;
  }
  if (found->second.weight != desired.weight)
    out.push_back({Kind::set_weight, proxy, name, 0, desired.weight});
  if (found->second.state != ServerState::ready) out.push_back({Kind::set_ready, proxy, name});
}

// Adds the next steps to remove a server.
void remove(const std::string& proxy, const std::string& name, const ProxyServer& observed,
            std::vector<ProxyAction>& out) {
  if (observed.state == ServerState::ready) {
    out.push_back({Kind::set_drain, proxy, name});
    return;
  }
  if (observed.sessions > 0) return;
  if (observed.state == ServerState::drain) out.push_back({Kind::set_maint, proxy, name});
  out.push_back({Kind::remove_server, proxy, name});
}

}  // namespace

std::vector<ProxyAction> plan(const std::vector<DesiredEndpoint>& desired, const std::string& frame,
                              const ProxyObserved& observed) {
  if (observed.frame != frame) return {{Kind::reload}};
  static const ServersByName none;
  std::vector<ProxyAction> added, removed;
  for (const DesiredEndpoint& endpoint : desired) {
    const std::string proxy = proxy_name(endpoint.name_space, endpoint.service);
    const auto backend = observed.backends.find(proxy);
    const ServersByName& present = backend != observed.backends.end() ? backend->second : none;
    std::set<std::string> wanted;
    for (const DesiredServer& server : endpoint.servers) {
      serve(proxy, server, present, added);
      wanted.insert(server_name(server.replica, server.port));
    }
    for (const auto& [name, server] : present)
      if (!wanted.contains(name)) remove(proxy, name, server, removed);
  }
  added.insert(added.end(), removed.begin(), removed.end());
  return added;
}

}  // namespace carve::controller
