// The configuration file of HAProxy 2.6, generated from the desired endpoints. The text does not depend on
// the order in which they are listed.
//
// * The text contains the current servers, because a reload drops servers that were added at run time. A
//   change of servers needs no reload. The digest of the rest, the frame, is written to the file as
//   `description`, which `show info` returns, so the running process reports its frame.
// * A frontend's name is NAMESPACE:SERVICE:PORT, a backend's NAMESPACE:SERVICE, a server's REPLICA.PORT. A
//   replica that comes back on another port is another server, and the first one drains. Names are labels of
//   RFC 1123, so text from users can never end a word or a line of the file.
// * HAProxy does not check servers: only replicas whose probe succeeded are listed.
// * `option http-server-close`: a replica that closed an idle connection just as the next request arrives
//   would lose a request that cannot be repeated (uvicorn closes after 5 s). A connection to a replica
//   carries one request, so there is no such moment. The client's connection stays open.
// * A request is repeated on another replica if no connection could be opened. GET, HEAD and OPTIONS are also
//   repeated if the replica closed without an answer.
// * Timeouts: 1 s to connect; 10 minutes without a byte in either direction, for long polls and for models
//   that load; 1 hour without a byte for tunnels (websockets); 30 s for a request's header. A worker that was
//   replaced by a reload ends when its last request has ended, after 1 hour at the latest.
// * After a reload HAProxy immediately closes idle client connections, even if a request is just arriving:
//   61 of 279,000 POSTs were lost in 80 reloads (8 clients). `close-spread-time infinite` turns this off, and
//   each response of the old worker has `Connection: close`: 0 of 336,000 were lost in 160 reloads. An idle
//   connection to the old worker ends after 60 s.
// * A stick table counts each endpoint's responses by their time (latency_rules()), so no log is parsed. A new
//   worker begins with an empty table.
// * Sockets and files have relative paths: HAProxy runs in its directory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

inline constexpr size_t max_endpoints = 256;                                // The same as for services.
inline constexpr size_t max_endpoint_servers = 2 * workload::max_replicas;  // A rollout may double them.
inline constexpr unsigned max_server_weight = 256;                          // The limit of HAProxy.

struct ProxySettings {
  uint16_t metrics_port = 0;  // Port of the Prometheus exporter on 127.0.0.1; 0 for its unix socket only.
  unsigned threads = 2;       // 1 to 64.
};

// Names of files in the proxy's directory.
inline constexpr const char* config_file = "haproxy.cfg";
inline constexpr const char* admin_socket = "admin.sock";
inline constexpr const char* master_socket = "master.sock";
inline constexpr const char* metrics_socket = "metrics.sock";
// The stick table with the times of each endpoint's responses, by bucket.
inline constexpr const char* latency_table = "carve-latency";

// Returns the first rule that the endpoints violate (invalid_argument).
Outcome<void> check(const std::vector<DesiredEndpoint>&, const ProxySettings& = {});

// Returns the service's name within HAProxy.
std::string proxy_name(std::string_view name_space, std::string_view service);
std::string server_name(std::string_view replica, uint16_t port);

struct ProxyId {
  std::string name_space;
  std::string service;
  uint16_t port = 0;  // Port of a frontend; 0 in a backend's name.
};
struct ServerId {
  std::string replica;
  uint16_t port = 0;
};
// Parses such a name; no value for a name that this file does not assign.
std::optional<ProxyId> parse_proxy_name(std::string_view);
std::optional<ServerId> parse_server_name(std::string_view);

// Returns the digest of the configuration without its servers: 16 hexadecimal digits. A running process with
// another digest must be reloaded. The endpoints must be valid.
std::string frame_of(std::vector<DesiredEndpoint>, const ProxySettings& = {});

// Returns the text of haproxy.cfg. The endpoints must be valid.
std::string config_text(std::vector<DesiredEndpoint>, const ProxySettings& = {});

}  // namespace carve::controller
