#include "controller/runtime/endpoint_config.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

namespace carve::controller {
namespace {

constexpr size_t max_name_bytes = 63;  // A label of RFC 1123.
constexpr unsigned max_threads = 64;   // HAProxy's limit for a thread group.

// Limits in addition to the endpoints: the number of descriptors, which determines the memory that HAProxy
// reserves at its start, and the number of old workers after reloads.
constexpr const char* global_form = R"(# Written by carve-controller; changes are lost.
global
    description {frame}
    stats socket unix@{admin} mode 600 level admin expose-fd listeners
    nbthread {threads}
    fd-hard-limit 16384
    hard-stop-after 1h
    close-spread-time infinite
    mworker-max-reloads 128

defaults
    mode http
    balance leastconn
    option http-server-close
    option redispatch 1
    retries 3
    retry-on conn-failure empty-response
    timeout connect 1s
    timeout http-request 30s
    timeout http-keep-alive 60s
    timeout queue 30s
    timeout client 10m
    timeout server 10m
    timeout tunnel 1h

backend {latency_table}
    stick-table type string len 128 size 1k store gpc({buckets}),gpt(1)

frontend carve-metrics
    bind unix@{metrics} mode 600
)";

constexpr const char* endpoint_form = R"(
frontend {proxy}:{port}
    bind 127.0.0.1:{port}
    http-after-response set-header Connection close if {{ stopping }} !{{ status 101 }}
    http-request disable-l7-retry unless {{ method GET HEAD OPTIONS }}
    http-request set-var(txn.began) date(0,ms)
    http-request track-sc0 str({proxy}) table {latency_table}
{latency_rules}    default_backend {proxy}

backend {proxy}
)";

bool is_name(std::string_view text) {
  const auto is_alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= max_name_bytes && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return c == '-' || is_alphanumeric(c); });
}

// Returns at most 80 bytes of the text without control characters, for a message.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 80));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c == 0x7f; }, '?');
  return out;
}

Outcome<void> check_name(const char* what, std::string_view name) {
  if (is_name(name)) return {};
  return failure(FailureKind::invalid_argument,
                 "the {} '{}' is not a valid name; use 1 to {} characters from a-z, 0-9 and '-', with "
                 "a letter or digit at both ends",
                 what, shown(name), max_name_bytes);
}

Outcome<void> check_servers(const DesiredEndpoint& endpoint, const std::set<uint16_t>& frontends) {
  const std::string name = proxy_name(endpoint.name_space, endpoint.service);
  if (endpoint.servers.size() > max_endpoint_servers)
    return failure(FailureKind::invalid_argument, "endpoint {} has {} servers; at most {} are allowed", name,
                   endpoint.servers.size(), max_endpoint_servers);
  std::set<std::string_view> replicas;
  for (const DesiredServer& server : endpoint.servers) {
    if (const auto good = check_name("replica", server.replica); !good) return good;
    if (!replicas.insert(server.replica).second)
      return failure(FailureKind::invalid_argument, "endpoint {} lists replica {} twice", name,
                     server.replica);
    if (server.port == 0)
      return failure(FailureKind::invalid_argument, "replica {} of endpoint {} has no port", server.replica,
                     name);
    if (frontends.contains(server.port))
      return failure(FailureKind::invalid_argument,
                     "replica {} of endpoint {} has port {}, which is the port of an endpoint",
                     server.replica, name, server.port);
    if (server.weight < 1 || server.weight > max_server_weight)
      return failure(FailureKind::invalid_argument,
                     "replica {} of endpoint {} has weight {}; it must be 1 to {}", server.replica, name,
                     server.weight, max_server_weight);
  }
  return {};
}

void sort(std::vector<DesiredEndpoint>& endpoints) {
  for (DesiredEndpoint& endpoint : endpoints) std::ranges::sort(endpoint.servers);
  std::ranges::sort(endpoints);
}

// Returns the rules that count the time from the request to the header of a replica's response by bucket, and
// add it to the sum. The sum has 32 bits (RequestTotals). Two simultaneous responses may count as one in the
// sum, because HAProxy 2.6 has no action that adds to a number.
std::string latency_rules() {
  std::string out = "    http-response set-var(txn.ms) date(0,ms),sub(txn.began)\n";
  uint64_t from = 0;
  for (size_t i = 0; i < latency_bounds_ms.size(); ++i) {
    out += i == 0 ? fmt::format("    http-response sc-inc-gpc(0,0) if {{ var(txn.ms) -m int le {} }}\n",
                                latency_bounds_ms[i])
                  : fmt::format("    http-response sc-inc-gpc({},0) if {{ var(txn.ms) -m int {}:{} }}\n", i,
                                from, latency_bounds_ms[i]);
    from = latency_bounds_ms[i] + 1;
  }
  return out + fmt::format(
                   "    http-response sc-inc-gpc({},0) if {{ var(txn.ms) -m int ge {} }}\n"
                   "    http-response sc-set-gpt(0,0) sc_get_gpt(0,0),add(txn.ms)\n",
                   latency_bounds_ms.size(), from);
}

enum class Servers : uint8_t { included, left_out };

std::string text_of(const std::vector<DesiredEndpoint>& sorted, const ProxySettings& settings,
                    std::string_view frame, Servers servers) {
  std::string out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, fmt::runtime(global_form), fmt::arg("frame", frame), fmt::arg("admin", admin_socket),
                 fmt::arg("threads", settings.threads), fmt::arg("metrics", metrics_socket),
                 fmt::arg("latency_table", latency_table), fmt::arg("buckets", LatencyCounts().size()));
  if (settings.metrics_port != 0) fmt::format_to(to, "    bind 127.0.0.1:{}\n", settings.metrics_port);
  out += "    http-request use-service prometheus-exporter if { path /metrics }\n";
  for (const DesiredEndpoint& endpoint : sorted) {
    fmt::format_to(to, fmt::runtime(endpoint_form), fmt::arg("port", endpoint.port),
                   fmt::arg("proxy", proxy_name(endpoint.name_space, endpoint.service)),
                   fmt::arg("latency_table", latency_table), fmt::arg("latency_rules", latency_rules()));
    if (servers == Servers::included)
      for (const DesiredServer& server : endpoint.servers)
        fmt::format_to(to, "    server {} 127.0.0.1:{} weight {}\n", server_name(server.replica, server.port),
                       server.port, server.weight);
  }
  return out;
}

std::string digest(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits.
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0 || text.front() == '0')
    return std::nullopt;
  return port;
}

}  // namespace

Outcome<void> check(const std::vector<DesiredEndpoint>& endpoints, const ProxySettings& settings) {
  if (settings.threads < 1 || settings.threads > max_threads)
    return failure(FailureKind::invalid_argument, "HAProxy cannot have {} threads; use 1 to {}",
                   settings.threads, max_threads);
  if (endpoints.size() > max_endpoints)
    return failure(FailureKind::invalid_argument, "{} endpoints are desired; at most {} are allowed",
                   endpoints.size(), max_endpoints);
  std::set<std::string> names;
  std::set<uint16_t> ports;
  if (settings.metrics_port != 0) ports.insert(settings.metrics_port);
  for (const DesiredEndpoint& endpoint : endpoints) {
    if (const auto good = check_name("namespace", endpoint.name_space); !good) return good;
    if (const auto good = check_name("service", endpoint.service); !good) return good;
    const std::string name = proxy_name(endpoint.name_space, endpoint.service);
    if (!names.insert(name).second)
      return failure(FailureKind::invalid_argument, "endpoint {} is desired twice", name);
    if (endpoint.port == 0) return failure(FailureKind::invalid_argument, "endpoint {} has no port", name);
    if (!ports.insert(endpoint.port).second)
      return failure(FailureKind::invalid_argument, "endpoint {} has port {}, which another endpoint has",
                     name, endpoint.port);
  }
  for (const DesiredEndpoint& endpoint : endpoints)
    if (const auto good = check_servers(endpoint, ports); !good) return good;
  return {};
}

std::string proxy_name(std::string_view name_space, std::string_view service) {
  return fmt::format("{}:{}", name_space, service);
}

std::string server_name(std::string_view replica, uint16_t port) {
  return fmt::format("{}.{}", replica, port);
}

std::optional<ProxyId> parse_proxy_name(std::string_view name) {
  const size_t first = name.find(':');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = name.find(':', first + 1);
  ProxyId id{.name_space = std::string(name.substr(0, first)),
             .service = std::string(name.substr(first + 1, second - first - 1))};
  if (second != std::string_view::npos) {
    const auto port = parse_port(name.substr(second + 1));
    if (!port) return std::nullopt;
    id.port = *port;
  }
  if (!is_name(id.name_space) || !is_name(id.service)) return std::nullopt;
  return id;
}

std::optional<ServerId> parse_server_name(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || !is_name(name.substr(0, dot))) return std::nullopt;
  const auto port = parse_port(name.substr(dot + 1));
  if (!port) return std::nullopt;
  return ServerId{std::string(name.substr(0, dot)), *port};
}

std::string frame_of(std::vector<DesiredEndpoint> endpoints, const ProxySettings& settings) {
  sort(endpoints);
  return digest(text_of(endpoints, settings, "", Servers::left_out));
}

std::string config_text(std::vector<DesiredEndpoint> endpoints, const ProxySettings& settings) {
  sort(endpoints);
  const std::string frame = digest(text_of(endpoints, settings, "", Servers::left_out));
  return text_of(endpoints, settings, frame, Servers::included);
}

}  // namespace carve::controller
