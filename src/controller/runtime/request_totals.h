// Totals of requests over all HAProxy workers. Each reload starts a worker with counters at 0, and a worker's
// counters are lost when it ends. The totals include the last reading of each worker, so they never decrease.
// They miss requests that a worker counts between its last reading and its end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

struct RequestCounters {
  uint64_t requests = 0;
  std::array<uint64_t, 6> responses{};  // 1xx, 2xx, 3xx, 4xx, 5xx, others.
  LatencyCounts latency{};
  uint64_t latency_sum_ms = 0;  // A worker's own sum has 32 bits and wraps.

  RequestCounters& operator+=(const RequestCounters& other) {
    requests += other.requests;
    for (size_t i = 0; i < responses.size(); ++i) responses[i] += other.responses[i];
    for (size_t i = 0; i < latency.size(); ++i) latency[i] += other.latency[i];
    latency_sum_ms += other.latency_sum_ms;
    return *this;
  }
  friend bool operator==(const RequestCounters&, const RequestCounters&) = default;
};

using CountersByProxy = std::map<std::string, RequestCounters>;

class RequestTotals {
 public:
  // Adds the counters of all live workers, keyed by process id.
  void update(std::map<int, CountersByProxy> workers) {
    for (const auto& [worker, counters] : workers_) {
      const auto lives = workers.find(worker);
      if (lives == workers.end() || has_restarted(counters, lives->second))
        add(counters, ended_);
      else
        continue_sums(counters, lives->second);
    }
    workers_ = std::move(workers);
  }

  CountersByProxy totals() const {
    CountersByProxy out = ended_;
    for (const auto& [worker, counters] : workers_) add(counters, out);
    return out;
  }

  // Drops a service that no worker has, so that the totals do not grow with former services.
  void forget(const std::string& proxy) { ended_.erase(proxy); }

 private:
  // Returns whether another worker has reused the process id of an ended one.
  static bool has_restarted(const CountersByProxy& before, const CountersByProxy& now) {
    for (const auto& [proxy, counters] : before) {
      const auto found = now.find(proxy);
      if (found == now.end() || found->second.requests < counters.requests) return true;
    }
    return false;
  }
  // Continues the sums of a worker beyond 32 bits.
  static void continue_sums(const CountersByProxy& before, CountersByProxy& now) {
    for (const auto& [proxy, counters] : before) {
      const auto found = now.find(proxy);
      if (found == now.end()) continue;
      const auto grown = static_cast<uint32_t>(found->second.latency_sum_ms) -
                         static_cast<uint32_t>(counters.latency_sum_ms);
      found->second.latency_sum_ms = counters.latency_sum_ms + grown;
    }
  }
  static void add(const CountersByProxy& from, CountersByProxy& to) {
    for (const auto& [proxy, counters] : from) to[proxy] += counters;
  }

  std::map<int, CountersByProxy> workers_;
  CountersByProxy ended_;
};

}  // namespace carve::controller
