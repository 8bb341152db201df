// Serves the endpoints with HAProxy (Debian's package haproxy, version 2.6). HAProxy outlives this object and
// its program; the next object with the same directory takes over the running process, and no request is
// lost.
//
// Files in the directory: haproxy.cfg, haproxy.process (identifies the process), haproxy.log (its messages;
// emptied before a reload if it is larger than 1 MiB), haproxy.lock, and the sockets admin.sock, master.sock
// and metrics.sock. A service manager must not end HAProxy together with the program, so a systemd unit needs
// KillMode=process.
//
// After a reload an old worker lives until its last connection has ended. Its servers can no longer be
// changed, so a client's idle connection to it may still bring a request for a replica that is no longer
// desired. Such a replica stays in the draining state until these connections have ended, which takes at most
// 60 s.
#pragma once

#include <memory>
#include <set>

#include "controller/runtime/endpoint_config.h"
#include "controller/runtime/endpoint_plan.h"
#include "controller/runtime/proxy_process.h"
#include "controller/runtime/request_totals.h"

namespace carve::controller {

struct HaProxySettings {
  std::string directory;            // Created if missing, with access only for its owner.
  std::string program = "haproxy";  // A path, or a name that is searched in PATH.
  ProxySettings proxy = {};
};

// Calls block for at most a few seconds. Only one thread may call at a time.
class HaProxy {
 public:
  // Takes the directory's lock. HAProxy is started by the first apply() that has an endpoint. Fails with
  // failed_precondition if another process has the lock, and with invalid_argument if a socket's path would
  // be too long.
  static Outcome<std::unique_ptr<HaProxy>> open(HaProxySettings);

  // Applies the desired endpoints, each with its ready replicas, as far as is possible now. Fails with
  // invalid_argument if `desired` violates a rule (check() in endpoint_config.h), and then changes nothing;
  // with failed_precondition if another process listens on the port of an endpoint, and then applies the
  // other endpoints; and with unavailable if the proxy cannot be started, reached or changed, in which case
  // the next call continues.
  Outcome<void> apply(const std::vector<DesiredEndpoint>& desired);
  // Returns why the last apply() left out the endpoint, as a message; empty if it was applied.
  std::string problem_of(const std::string& name_space, const std::string& service) const;

  // Returns the proxy's state, which is empty if the proxy is not running.
  Outcome<ObservedEndpoints> observe();

 private:
  // The state of one worker, including the parts that a plan does not need.
  struct Worker {
    int pid = 0;
    ProxyObserved servers;
    std::set<uint16_t> ports;                          // Ports of its frontends.
    std::map<std::string, uint64_t> idle_connections;  // Idle client connections, by backend.
    std::vector<StatRow> stat;
    std::vector<LatencyRow> latency;
  };

  HaProxy(HaProxySettings settings, os::Fd lock)
      : settings_(std::move(settings)),
        lock_(std::move(lock)),
        process_(settings_.directory, settings_.program) {}

  Outcome<std::string> ask(int worker, const std::string& command) const;
  Outcome<Worker> read_worker(int worker) const;
  // Returns the current worker first, then the old ones; empty if HAProxy is not running. An old worker may
  // end at any time. If a live worker cannot be read, the call fails, because its requests would be
  // overlooked.
  Outcome<std::vector<Worker>> read_workers() const;
  bool has_ended(int worker) const;
  static std::vector<ObservedServer> servers(const std::vector<Worker>&);
  std::vector<RequestFigures> figures(const std::vector<Worker>&);
  Outcome<void> write_config(const std::string& text) const;
  Outcome<void> write_checked_config(const std::string& text) const;
  Outcome<void> start_or_reload(const std::string& text, const std::optional<ProxyProcesses>& running) const;
  Outcome<void> carry_out(int worker, const ProxyAction&) const;
  Outcome<void> converge(const std::vector<DesiredEndpoint>& usable, const std::string& text) const;

  std::map<std::string, std::string> problems_;  // Endpoints whose ports other programs hold, by proxy.
  HaProxySettings settings_;
  os::Fd lock_;
  ProxyProcess process_;
  RequestTotals totals_;
};

}  // namespace carve::controller
