// Probes the replicas' ports on 127.0.0.1. A probe succeeds if a TCP connection succeeds, or if an HTTP GET
// is answered with 2xx or 3xx. The listener must belong to the replica (port_owner.h). One thread carries out
// all probes concurrently, each at its own period. A probe fails if there is no answer within its timeout.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "controller/services/effects.h"
#include "os/process.h"

namespace carve::controller {

struct ProbeTarget {
  uint32_t port = 0;
  std::string path;  // Path of the GET; empty to test only the connection.
  int64_t period_ns = 0;
  int64_t timeout_ns = 0;
  os::ProcessId supervisor;  // The replica's supervisor.

  friend bool operator==(const ProbeTarget&, const ProbeTarget&) = default;
};

class Prober {
 public:
  Prober();
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Starts or continues to probe the target under this name. Returns the result of the last finished probe,
  // once.
  std::optional<ProbeResult> probe(const std::string& name, const ProbeTarget&);
  // Drops targets that were not probed since the last call.
  void forget_unasked();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

// Returns whether the response has status 2xx or 3xx; no value if more bytes are needed.
std::optional<bool> http_success(std::string_view response);

}  // namespace carve::controller
