// Endpoints without a proxy, for tests of their callers. A removed server drains while the test keeps
// sessions at it.
#pragma once

#include <map>
#include <optional>

#include "controller/runtime/endpoint_config.h"

namespace carve::controller {

class EndpointsFake final : public Endpoints {
 public:
  Outcome<void> apply(const std::vector<DesiredEndpoint>& desired) override {
    if (const auto good = check(desired); !good) return good;
    if (failure) return tl::unexpected(*failure);
    ++applied;
    last = desired;
    for (ObservedServer& server : servers_) server.state = workload::EndpointState::draining;
    for (const DesiredEndpoint& endpoint : desired)
      for (const DesiredServer& server : endpoint.servers) serve(endpoint, server);
    std::erase_if(servers_, [&](const ObservedServer& server) {
      return server.state == workload::EndpointState::draining && !sessions.contains(server.replica);
    });
    return {};
  }

  Outcome<std::vector<ObservedServer>> observe() override {
    if (failure) return tl::unexpected(*failure);
    for (ObservedServer& server : servers_) {
      const auto open = sessions.find(server.replica);
      server.sessions = open != sessions.end() ? open->second : 0;
    }
    return servers_;
  }

  Outcome<std::vector<RequestFigures>> figures() override {
    if (failure) return tl::unexpected(*failure);
    return carried;
  }

  std::optional<Failure> failure;            // What every call returns instead.
  std::map<std::string, uint64_t> sessions;  // By replica. An entry keeps its server from being removed.
  std::vector<RequestFigures> carried;       // What figures() returns.
  std::vector<DesiredEndpoint> last;         // Of the last apply() that succeeded.
  unsigned applied = 0;

 private:
  void serve(const DesiredEndpoint& endpoint, const DesiredServer& server) {
    for (ObservedServer& known : servers_)
      if (known.name_space == endpoint.name_space && known.service == endpoint.service &&
          known.replica == server.replica && known.port == server.port) {
        known.state = workload::EndpointState::serving;
        return;
      }
    servers_.push_back({endpoint.name_space, endpoint.service, server.replica, server.port,
                        workload::EndpointState::serving, 0});
  }

  std::vector<ObservedServer> servers_;
};

}  // namespace carve::controller
