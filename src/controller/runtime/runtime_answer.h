// Parses HAProxy 2.6's answers by column name, because other versions have more columns in another order. An
// answer that lacks a column, or has text in a numeric column, is rejected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/runtime/endpoints.h"
#include "core/failure.h"

namespace carve::controller {

// The master's answer to `show proc`.
struct ProxyProcesses {
  int master = 0;
  uint64_t reloads = 0;
  uint64_t failed_reloads = 0;   // Consecutive.
  int worker = 0;                // Pid of the current worker; 0 if there is none.
  std::vector<int> old_workers;  // Workers that end when their last request has ended.

  friend bool operator==(const ProxyProcesses&, const ProxyProcesses&) = default;
};
Outcome<ProxyProcesses> read_processes(std::string_view answer);

// One line of `show stat`. An empty column counts as 0.
struct StatRow {
  enum class Kind : uint8_t { frontend, backend, server, listener };
  std::string proxy;
  std::string name;  // FRONTEND, BACKEND, or the server's name.
  Kind kind = Kind::frontend;
  uint64_t queued = 0;
  uint64_t sessions =
      0;  // For a frontend, connections including idle ones; otherwise requests, streams and tunnels.
  uint64_t requests = 0;                // Total; only set for a frontend.
  std::array<uint64_t, 6> responses{};  // Totals: 1xx, 2xx, 3xx, 4xx, 5xx, others.
  uint64_t mean_response_ms = 0;

  friend bool operator==(const StatRow&, const StatRow&) = default;
};
Outcome<std::vector<StatRow>> read_stat(std::string_view answer);

// One line of `show servers state` (version 1).
struct ServerRow {
  std::string proxy;
  std::string server;
  uint64_t administrative = 0;  // Bits, see is_drained() and is_in_maintenance().
  uint64_t weight = 0;          // Current weight.

  friend bool operator==(const ServerRow&, const ServerRow&) = default;
};
bool is_in_maintenance(const ServerRow&);
bool is_drained(const ServerRow&);
Outcome<std::vector<ServerRow>> read_servers(std::string_view answer);

// One entry of the table of response times (endpoint_config.h).
struct LatencyRow {
  std::string proxy;  // "NAMESPACE:SERVICE"
  LatencyCounts counts{};
  uint64_t sum_ms = 0;

  friend bool operator==(const LatencyRow&, const LatencyRow&) = default;
};
// Parses the answer to `show table`. A worker that an earlier version configured has no such table; its answer
// gives no rows.
Outcome<std::vector<LatencyRow>> read_latency(std::string_view answer);

// Returns the value of a line "NAME: VALUE" in the answer to `show info`; no value if there is no such line.
std::optional<std::string_view> read_info(std::string_view answer, std::string_view name);

}  // namespace carve::controller
