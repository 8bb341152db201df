#include "controller/runtime/haproxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "os/directory.h"
#include "os/socket.h"

namespace carve::controller {
namespace {

using Kind = ProxyAction::Kind;
using workload::EndpointState;

constexpr const char* candidate_file = "haproxy.cfg.candidate";
constexpr const char* lock_file = "haproxy.lock";
constexpr size_t bind_suffix_bytes = 12;  // HAProxy binds to PATH.PID.tmp and renames it.
constexpr int64_t max_worker_end_ns = os::second / 2;
constexpr int max_rounds = 6;  // Reload, add, drain, remove, and more after lost races.

// Returns the errno with which HAProxy could not listen on the port; 0 if it could. A single unusable port
// makes a whole start or reload fail.
int listen_error(uint16_t port) {
  const os::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // Ignores connections that have ended.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

// Waits briefly until the ports are free: a worker ends with its master, but slightly later.
void wait_for_ports(const std::vector<DesiredEndpoint>& endpoints) {
  poll_until(max_worker_end_ns, [&] {
    return std::ranges::all_of(endpoints,
                               [](const auto& endpoint) { return listen_error(endpoint.port) == 0; });
  });
}

// Returns HAProxy's command for the action. The names were validated or come from HAProxy.
std::string command_of(const ProxyAction& action) {
  const std::string server = action.proxy + "/" + action.server;
  switch (action.kind) {
    case Kind::reload: break;
    case Kind::add_server:
      return fmt::format("add server {} 127.0.0.1:{} weight {}", server, action.port, action.weight);
    case Kind::set_weight: return fmt::format("set weight {} {}", server, action.weight);
    case Kind::set_ready: return fmt::format("set server {} state ready", server);
    case Kind::set_drain: return fmt::format("set server {} state drain", server);
    case Kind::set_maint: return fmt::format("set server {} state maint", server);
    case Kind::remove_server: return fmt::format("del server {}", server);
  }
  return "reload";
}

// Returns whether the answer means that the command was carried out. An empty answer does.
bool is_done(const ProxyAction& action, std::string_view answer) {
  while (answer.ends_with('\n')) answer.remove_suffix(1);
  if (answer.empty()) return true;
  // The server may still have a connection; the next apply() tries again.
  if (action.kind == Kind::remove_server)
    return answer == "Server deleted." || answer.starts_with("Server still has connections");
  return action.kind == Kind::add_server && answer == "New server registered.";
}

ServerState state_of(const ServerRow& row) {
  if (is_in_maintenance(row)) return ServerState::maint;
  return is_drained(row) ? ServerState::drain : ServerState::ready;
}

using ServerKey = std::tuple<std::string, std::string, std::string, uint16_t>;
using ServersByKey = std::map<ServerKey, ObservedServer>;

// Returns the entry of a server, or null if Carve did not assign the names.
ObservedServer* entry(ServersByKey& all, const std::string& proxy, const std::string& name) {
  const auto service = parse_proxy_name(proxy);
  const auto server = parse_server_name(name);
  if (!service || !server) return nullptr;
  ObservedServer& out = all[{service->name_space, service->service, server->replica, server->port}];
  if (out.replica.empty())
    out = {service->name_space, service->service, server->replica, server->port, EndpointState::absent, 0};
  return &out;
}

}  // namespace

Outcome<std::unique_ptr<HaProxy>> HaProxy::open(HaProxySettings settings) {
  if (const auto good = check({}, settings.proxy); !good) return tl::unexpected(good.error());
  const size_t longest = settings.directory.size() + 1 + strlen(metrics_socket) + bind_suffix_bytes;
  if (longest > os::max_socket_path_bytes)
    return failure(FailureKind::invalid_argument,
                   "the directory {} has {} characters; HAProxy's sockets allow at most {}",
                   settings.directory, settings.directory.size(),
                   os::max_socket_path_bytes - (longest - settings.directory.size()));
  if (const auto made = os::make_directory(settings.directory, 0700); !made)
    return tl::unexpected(made.error());
  auto lock = os::hold_lock(settings.directory + "/" + lock_file, "controller",
                            "the endpoints in " + settings.directory);
  if (!lock) return tl::unexpected(lock.error());
  return std::unique_ptr<HaProxy>(new HaProxy(std::move(settings), std::move(*lock)));
}

Outcome<std::string> HaProxy::ask(int worker, const std::string& command) const {
  auto answer = process_.socket().ask(fmt::format("@!{} {}", worker, command));
  if (answer && answer->starts_with("Can't find the target"))
    return failure(FailureKind::unavailable, "HAProxy's worker {} has ended", worker);
  return answer;
}

Outcome<HaProxy::Worker> HaProxy::read_worker(int worker) const {
  const auto info = ask(worker, "show info");
  const auto servers_text = ask(worker, "show servers state");
  const auto stat_text = ask(worker, "show stat");
  const auto latency_text = ask(worker, fmt::format("show table {}", latency_table));
  for (const auto* text : {&info, &servers_text, &stat_text, &latency_text})
    if (!*text) return tl::unexpected(text->error());
  const auto servers = read_servers(*servers_text);
  if (!servers) return tl::unexpected(servers.error());
  const auto stat = read_stat(*stat_text);
  if (!stat) return tl::unexpected(stat.error());
  auto latency = read_latency(*latency_text);
  if (!latency) return tl::unexpected(latency.error());
  Worker out;
  out.latency = std::move(*latency);
  out.pid = worker;
  out.servers.frame = std::string(read_info(*info, "description").value_or(""));
  for (const ServerRow& row : *servers)
    out.servers.backends[row.proxy][row.server] = {
        .state = state_of(row), .weight = row.weight, .sessions = 0};
  std::map<std::string, uint64_t> busy;
  for (const StatRow& row : *stat) {
    const auto id = parse_proxy_name(row.proxy);
    if (!id) continue;
    const std::string backend = proxy_name(id->name_space, id->service);
    if (row.kind == StatRow::Kind::frontend) {
      out.ports.insert(id->port);
      out.idle_connections[backend] += row.sessions;
    } else if (row.kind == StatRow::Kind::backend) {
      busy[backend] += row.sessions;
    } else if (row.kind == StatRow::Kind::server) {
      // Servers missing from the first answer were added in between, which only this object does.
      out.servers.backends[backend][row.name].sessions = row.sessions + row.queued;
    }
  }
  for (auto& [backend, connections] : out.idle_connections)
    connections -= std::min(connections, busy[backend]);
  out.stat = *stat;
  return out;
}

Outcome<std::vector<HaProxy::Worker>> HaProxy::read_workers() const {
  std::vector<Worker> out;
  const auto running = process_.find();
  if (!running) return tl::unexpected(running.error());
  if (!*running || (*running)->worker == 0) return out;
  auto present = read_worker((*running)->worker);
  if (!present) return tl::unexpected(present.error());
  out.push_back(std::move(*present));
  for (const int pid : (*running)->old_workers) {
    Outcome<Worker> worker = failure(FailureKind::unavailable, "the worker was not read");
    const bool settled = poll_until(max_silence_ns, [&] {
      worker = read_worker(pid);
      return worker || has_ended(pid);
    });
    if (worker) out.push_back(std::move(*worker));
    if (!settled) return tl::unexpected(worker.error());
  }
  return out;
}

bool HaProxy::has_ended(int worker) const {
  const auto running = process_.find();
  return running && *running && (*running)->worker != worker &&
         std::ranges::find((*running)->old_workers, worker) == (*running)->old_workers.end();
}

Outcome<void> HaProxy::write_config(const std::string& text) const {
  const std::string path = settings_.directory + "/" + config_file;
  if (os::read_file(path) == text) return {};
  return os::replace_file(path, text);
}

Outcome<void> HaProxy::write_checked_config(const std::string& text) const {
  const std::string candidate = settings_.directory + "/" + candidate_file;
  if (const auto written = os::replace_file(candidate, text); !written) return written;
  if (const auto good = process_.check_config(candidate_file); !good) return good;
  if (rename(candidate.c_str(), (settings_.directory + "/" + config_file).c_str()) == 0) return {};
  return failure(FailureKind::unavailable, "cannot rename {}: {}", candidate, strerror(errno));
}

Outcome<void> HaProxy::start_or_reload(const std::string& text,
                                       const std::optional<ProxyProcesses>& running) const {
  if (const auto written = write_checked_config(text); !written) return written;
  return running ? process_.reload() : process_.start();
}

Outcome<void> HaProxy::carry_out(int worker, const ProxyAction& action) const {
  const std::string command = command_of(action);
  const auto answer = ask(worker, command);
  if (!answer) return tl::unexpected(answer.error());
  if (is_done(action, *answer)) return {};
  return failure(FailureKind::unavailable, "HAProxy refuses '{}': {}", command,
                 answer->substr(0, answer->find('\n')));
}

Outcome<void> HaProxy::converge(const std::vector<DesiredEndpoint>& usable, const std::string& text) const {
  const std::string frame = frame_of(usable, settings_.proxy);
  bool reloaded = false;
  for (int round = 0; round < max_rounds; ++round) {
    const auto running = process_.find();
    if (!running) return tl::unexpected(running.error());
    if (!*running || (*running)->worker == 0)
      return failure(FailureKind::unavailable, "HAProxy has ended; the next call restarts it");
    const auto worker = read_worker((*running)->worker);
    if (!worker) return tl::unexpected(worker.error());
    const auto actions = plan(usable, frame, worker->servers);
    if (actions.empty()) return {};
    bool waits = true;
    for (const ProxyAction& action : actions) {
      if (action.kind == Kind::reload) {
        if (reloaded)
          return failure(FailureKind::unavailable,
                         "HAProxy's configuration differs from the one that it was given");
        if (const auto done = start_or_reload(text, *running); !done) return done;
        reloaded = true;
      } else if (const auto done = carry_out((*running)->worker, action); !done) {
        return done;
      }
      waits = waits && action.kind == Kind::remove_server;
    }
    if (waits) return {};  // The next call removes servers that could not be removed.
  }
  return {};  // The next call continues.
}

Outcome<void> HaProxy::apply(const std::vector<DesiredEndpoint>& desired) {
  if (const auto good = check(desired, settings_.proxy); !good) return good;
  const auto running = process_.find();
  if (!running) return tl::unexpected(running.error());
  if (!*running && desired.empty()) return {};
  std::set<uint16_t> own_ports;
  if (*running && (*running)->worker != 0) {
    const auto worker = read_worker((*running)->worker);
    if (!worker) return tl::unexpected(worker.error());
    own_ports = worker->ports;
  }
  if (!*running) wait_for_ports(desired);
  problems_.clear();
  std::vector<DesiredEndpoint> usable;
  Outcome<void> result;
  for (const DesiredEndpoint& endpoint : desired) {
    const int error = own_ports.contains(endpoint.port) ? 0 : listen_error(endpoint.port);
    if (error == 0) {
      usable.push_back(endpoint);
      continue;
    }
    const std::string proxy = proxy_name(endpoint.name_space, endpoint.service);
    problems_[proxy] = fmt::format(
        "endpoint {}: HAProxy cannot listen at 127.0.0.1:{}: {}; stop the process that listens there, or "
        "delete the service and apply it again to get another port",
        proxy, endpoint.port, strerror(error));
    if (result) result = failure(FailureKind::failed_precondition, "{}", problems_[proxy]);
  }
  const std::string text = config_text(usable, settings_.proxy);
  if (!*running) {
    if (usable.empty()) return result;
    if (const auto started = start_or_reload(text, std::nullopt); !started) return started;
    return result;
  }
  if (const auto done = converge(usable, text); !done) return done;
  // The file always contains the current servers, in case HAProxy must be restarted.
  if (const auto written = write_config(text); !written) return written;
  return result;
}

std::string HaProxy::problem_of(const std::string& name_space, const std::string& service) const {
  const auto found = problems_.find(proxy_name(name_space, service));
  return found == problems_.end() ? "" : found->second;
}

std::vector<ObservedServer> HaProxy::servers(const std::vector<Worker>& workers) {
  ServersByKey all;
  for (const Worker& worker : workers) {
    const bool present = &worker == &workers.front();
    for (const auto& [proxy, servers] : worker.servers.backends)
      for (const auto& [name, server] : servers) {
        ObservedServer* out = entry(all, proxy, name);
        if (out == nullptr) continue;
        out->sessions += server.sessions;
        const auto idle = worker.idle_connections.find(proxy);
        const bool may_get_requests =
            server.state == ServerState::ready && idle != worker.idle_connections.end() && idle->second > 0;
        if (present && server.state == ServerState::ready)
          out->state = EndpointState::serving;
        else if (out->state == EndpointState::absent &&
                 (server.sessions > 0 || may_get_requests || (present && server.state == ServerState::drain)))
          out->state = EndpointState::draining;
      }
  }
  std::vector<ObservedServer> out;
  for (const auto& [key, server] : all)
    if (server.state != EndpointState::absent) out.push_back(server);
  return out;
}

std::vector<RequestFigures> HaProxy::figures(const std::vector<Worker>& workers) {
  if (workers.empty()) return {};  // The totals are kept for the next HAProxy process.
  std::map<std::string, RequestFigures> out;
  std::map<int, CountersByProxy> counters;
  for (const Worker& worker : workers) {
    const bool present = &worker == &workers.front();
    for (const StatRow& row : worker.stat) {
      const auto id = parse_proxy_name(row.proxy);
      if (!id) continue;
      const std::string name = proxy_name(id->name_space, id->service);
      if (present)
        out.try_emplace(name, RequestFigures{.name_space = id->name_space, .service = id->service});
      if (row.kind == StatRow::Kind::frontend)
        counters[worker.pid][name] += {.requests = row.requests, .responses = row.responses};
      const auto figures = out.find(name);
      if (row.kind != StatRow::Kind::backend || figures == out.end()) continue;
      figures->second.sessions += row.sessions;
      figures->second.queued += row.queued;
      if (present) figures->second.mean_response_ms = row.mean_response_ms;
    }
    for (const LatencyRow& row : worker.latency)
      if (parse_proxy_name(row.proxy))
        counters[worker.pid][row.proxy] += {.latency = row.counts, .latency_sum_ms = row.sum_ms};
  }
  totals_.update(std::move(counters));
  for (const auto& [name, totals] : totals_.totals()) {
    const auto figures = out.find(name);
    if (figures == out.end()) {
      totals_.forget(name);
      continue;
    }
    figures->second.requests = totals.requests;
    figures->second.responses = totals.responses;
    figures->second.latency = totals.latency;
    figures->second.latency_sum_ms = totals.latency_sum_ms;
  }
  std::vector<RequestFigures> list;
  for (auto& [name, figures] : out) list.push_back(std::move(figures));
  return list;
}

Outcome<ObservedEndpoints> HaProxy::observe() {
  const auto workers = read_workers();
  if (!workers) return tl::unexpected(workers.error());
  return ObservedEndpoints{.servers = servers(*workers), .figures = figures(*workers)};
}

}  // namespace carve::controller
