// Probes of the replicas' ports on 127.0.0.1: whether a TCP connection succeeds, or whether an HTTP GET is
// answered with 2xx or 3xx. The listener must be the replica's own (port_owner.h). One thread carries out all
// probes concurrently, each at its period; a probe without an answer within its time has failed.
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
  std::string path;  // Path of the GET; empty if a connection is enough.
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

  // Probes the target from now on, under a name. Returns the result of the last finished probe, once.
  std::optional<ProbeResult> probe(const std::string& name, const ProbeTarget&);
  // Forgets targets that were not probed since the last call.
  void forget_unasked();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

// Returns whether the beginning of an HTTP response has status 2xx or 3xx; no value if more bytes are needed.
std::optional<bool> http_success(std::string_view response);

}  // namespace carve::controller
