// The endpoints of the services: one loopback address per service, with its ready replicas behind it. These
// types are the inputs and outputs of the proxy for the traffic (haproxy.h).
//
// A replica that is no longer desired is drained: it gets no new requests and is removed when it has no
// sessions left. Its program may be stopped when the replica is no longer observed (EndpointState::absent in
// workload/service.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "workload/service.h"

namespace carve::controller {

struct DesiredServer {
  std::string replica;  // The name of its slice, unique within the endpoint.
  uint16_t port = 0;    // Port on 127.0.0.1.
  unsigned weight = 1;  // 1 to max_server_weight: its part of the requests, relative to the others.

  friend auto operator<=>(const DesiredServer&, const DesiredServer&) = default;
};

struct DesiredEndpoint {
  std::string name_space = "default";
  std::string service;                      // Unique within the namespace.
  uint16_t port = 0;                        // Port on 127.0.0.1, unique among all endpoints and servers.
  std::vector<DesiredServer> servers = {};  // Only ready replicas. If there are none, requests get 503.

  friend auto operator<=>(const DesiredEndpoint&, const DesiredEndpoint&) = default;
};

struct ObservedServer {
  std::string name_space;
  std::string service;
  std::string replica;
  uint16_t port = 0;
  workload::EndpointState state = workload::EndpointState::absent;  // Either serving or draining.
  uint64_t sessions = 0;  // Requests, streams and tunnels that are open or queued.

  friend bool operator==(const ObservedServer&, const ObservedServer&) = default;
};

// Upper limits of the buckets in which times to the response header are counted (ms). A further bucket has no
// limit.
inline constexpr std::array<uint64_t, 14> latency_bounds_ms = {5,    10,   25,   50,    100,   250,   500,
                                                               1000, 2500, 5000, 10000, 30000, 60000, 300000};
using LatencyCounts = std::array<uint64_t, latency_bounds_ms.size() + 1>;  // Not cumulative.

// The traffic of one endpoint. Totals never decrease while the object lives; they start at the counters of
// the running proxy.
struct RequestFigures {
  std::string name_space;
  std::string service;
  uint64_t requests = 0;                // Total.
  std::array<uint64_t, 6> responses{};  // Totals: 1xx, 2xx, 3xx, 4xx, 5xx, others.
  uint64_t sessions = 0;                // Current requests, streams and tunnels at the replicas.
  uint64_t queued = 0;                  // Current requests that wait for a replica.
  uint64_t mean_response_ms = 0;        // From request to response header, over 1,024 requests.
  // Totals over the responses of replicas: their number by the time from request to response header, and the
  // sum of these times.
  LatencyCounts latency{};
  uint64_t latency_sum_ms = 0;

  friend bool operator==(const RequestFigures&, const RequestFigures&) = default;
};

// A snapshot of the proxy's state: the servers and the figures of all endpoints, each sorted by name.
struct ObservedEndpoints {
  std::vector<ObservedServer> servers;
  std::vector<RequestFigures> figures;
};

}  // namespace carve::controller
