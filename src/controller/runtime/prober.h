// Probes of the replicas' ports on 127.0.0.1: whether a TCP connection succeeds, or whether an HTTP GET is
// answered with 2xx or 3xx. The listener must be the replica's own (port_owner.h). One thread carries out all
// probes at once, each at its period; a probe that has no answer within its time has failed.
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
  std::string path;  // Of the GET; empty: a connection is enough.
  int64_t period_ns = 0;
  int64_t timeout_ns = 0;
  os::ProcessId supervisor;  // Of the replica.

  friend bool operator==(const ProbeTarget&, const ProbeTarget&) = default;
};

class Prober {
 public:
  Prober();
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Probes the target from now on, under a name. Returns the result of the last probe that has ended, once.
  std::optional<ProbeResult> probe(const std::string& name, const ProbeTarget&);
  // Forgets what was not asked for since the last call.
  void forget_unasked();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

// Returns whether the begin of an HTTP response says 2xx or 3xx; no value if more bytes are needed.
std::optional<bool> http_success(std::string_view response);

}  // namespace carve::controller
