// The endpoints, served by HAProxy (Debian's package haproxy, version 2.6). HAProxy outlives this object and
// its program; the next object with the same directory takes over the running one, and no request is lost.
//
// Files of the directory: haproxy.cfg, haproxy.process (identifies the process), haproxy.log (its messages;
// emptied before a reload if it has more than 1 MiB), haproxy.lock, and the sockets admin.sock, master.sock
// and metrics.sock. If a service manager ends the program with all its children, HAProxy ends too: a unit
// needs KillMode=process.
//
// After a reload an old worker lives until its last connection has ended. Its servers can no longer be
// changed, so a client's idle connection to it may still bring a request for a replica that is no longer
// desired. Such a replica is draining until these connections have ended, which takes at most 60 s.
#pragma once

#include <memory>
#include <set>

#include "controller/runtime/endpoint_config.h"
#include "controller/runtime/endpoint_plan.h"
#include "controller/runtime/proxy_process.h"
#include "controller/runtime/request_totals.h"

namespace carve::controller {

struct HaProxySettings {
  std::string directory;            // Created if it is missing; readable for its owner only.
  std::string program = "haproxy";  // A path, or a name that is looked up.
  ProxySettings proxy = {};
};

// Its calls block for at most a few seconds and come from one thread at a time.
class HaProxy {
 public:
  // Takes the directory's lock. HAProxy is started by the first apply() that has an endpoint.
  // failed_precondition: another process has the lock. invalid_argument: a socket's path would be too long.
  static Outcome<std::unique_ptr<HaProxy>> open(HaProxySettings);

  // Takes all desired endpoints, each with its ready replicas, and carries out everything that can be done
  // now. invalid_argument: `desired` violates a rule (check() of endpoint_config.h); nothing was changed.
  // failed_precondition: another process listens at the port of an endpoint; the other endpoints were
  // applied. unavailable: the proxy cannot be started, reached or changed; the next call continues.
  Outcome<void> apply(const std::vector<DesiredEndpoint>& desired);
  // Returns why the last apply() left the endpoint out, as a message; empty if it did not.
  std::string problem_of(const std::string& name_space, const std::string& service) const;

  // Returns the proxy's state, which is empty if it does not run.
  Outcome<ObservedEndpoints> observe();

 private:
  // The state of one worker beyond the part that a plan needs.
  struct Worker {
    int pid = 0;
    ProxyObserved servers;
    std::set<uint16_t> ports;                          // Ports of its frontends.
    std::map<std::string, uint64_t> idle_connections;  // Clients' connections, by backend.
    std::vector<StatRow> stat;
  };

  HaProxy(HaProxySettings settings, os::Fd lock)
      : settings_(std::move(settings)),
        lock_(std::move(lock)),
        process_(settings_.directory, settings_.program) {}

  Outcome<std::string> ask(int worker, const std::string& command) const;
  Outcome<Worker> read_worker(int worker) const;
  // Returns the current worker first, then the old ones; none if HAProxy does not run. An old worker may end
  // at any time. A live one that cannot be read is a failure, because its requests would be overlooked.
  Outcome<std::vector<Worker>> read_workers() const;
  bool has_ended(int worker) const;
  static std::vector<ObservedServer> servers(const std::vector<Worker>&);
  std::vector<RequestFigures> figures(const std::vector<Worker>&);
  Outcome<void> write_config(const std::string& text) const;
  Outcome<void> write_checked_config(const std::string& text) const;
  Outcome<void> start_or_reload(const std::string& text, const std::optional<ProxyProcesses>& running) const;
  Outcome<void> carry_out(int worker, const ProxyAction&) const;
  Outcome<void> converge(const std::vector<DesiredEndpoint>& usable, const std::string& text) const;

  std::map<std::string, std::string> problems_;  // Endpoints whose ports others hold, by proxy.
  HaProxySettings settings_;
  os::Fd lock_;
  ProxyProcess process_;
  RequestTotals totals_;
};

}  // namespace carve::controller
