#include "controller/runtime/machine_effects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "controller/runtime/container_start.h"
#include "core/invariant.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::controller {
namespace {

using workload::ProgramState;

constexpr std::chrono::seconds agent_patience{5};

// Returns the failure for an agent's answer. A kind that this program does not know counts as temporary.
Failure failure_of(const std::string& node, const api::Problem& problem) {
  const std::string message =
      fmt::format("node {}: {}", node, problem.detail.empty() ? problem.title : problem.detail);
  for (const FailureKind kind :
       {FailureKind::invalid_argument, FailureKind::permission_denied, FailureKind::not_found,
        FailureKind::already_exists, FailureKind::failed_precondition, FailureKind::insufficient_capacity})
    if (problem.type == shown(kind).type) return {kind, message};
  return {FailureKind::unavailable, message};
}

// Returns whether a program could listen on the port now.
bool is_port_free(uint32_t port) {
  const os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::pair<uint32_t, uint32_t> ports_of(Effects::PortUse use) {
  switch (use) {
    case Effects::PortUse::endpoint: return {first_endpoint_port, last_endpoint_port};
    case Effects::PortUse::engine: return {first_engine_port, last_engine_port};
    case Effects::PortUse::program: break;
  }
  return {first_program_port, last_program_port};
}

// Returns the mean over the parts of the slice.
uint32_t busy_percent(const api::Slice& slice) {
  uint64_t sum = 0;
  for (const api::SlicePart& part : slice.parts)
    sum += part.compute && part.share_bp != 0 ? uint64_t{part.compute->achieved_60s_bp} * 100 / part.share_bp
                                              : part.utilization_percent;
  return slice.parts.empty() ? 0 : static_cast<uint32_t>(sum / slice.parts.size());
}

ObservedSlice observed(const api::Slice& slice) {
  ObservedSlice out{.state = std::string(text(slice.state))};
  if (const auto name = slice.labels.find("carve.dev/name"); name != slice.labels.end())
    out.workload = name->second;
  for (const api::SlicePart& part : slice.parts)
    out.parts.push_back({.device = part.uuid, .memory_bytes = part.quota_bytes, .share_bp = part.share_bp});
  if (slice.parts.empty()) return out;
  out.memory_bytes = slice.parts.front().quota_bytes;
  out.share_bp = slice.parts.front().share_bp;
  out.is_exclusive = slice.exclusive;
  out.isolation = slice.isolation;
  out.policy = text(slice.policy);
  out.refused_at = static_cast<int64_t>(slice.refused_ns);
  out.busy_percent = busy_percent(slice);
  return out;
}

}  // namespace

MachineEffects::MachineEffects(std::vector<Node> nodes, NodeRules rules, Launcher launcher,
                               const std::string& folder)
    : nodes_(std::move(nodes)),
      rules_(std::move(rules)),
      launcher_(std::move(launcher)),
      programs_(folder + programs_folder),
      owners_(folder + "/owners", folder + programs_folder),
      proxy_folder_(folder + "/proxy") {}

void MachineEffects::begin_turn() {
  slices_.clear();
  prober_.forget_unasked();
  programs_.take_reports(os::monotonic_ns());
}

Outcome<const MachineEffects::Node*> MachineEffects::node_named(const std::string& name) const {
  const auto found = std::ranges::find(nodes_, name, &Node::name);
  if (found == nodes_.end())
    return failure(FailureKind::unavailable, "node {} is not a node of this controller; add it with --node",
                   name);
  return &*found;
}

client::AgentClient MachineEffects::agent_of(const Node& node) const {
  return client::AgentClient(node.socket, {.patience = agent_patience});
}

// The registry's devices may be as old as the last poll, so the slices of the nodes are listed again.
Outcome<void> MachineEffects::check_room(const RoomQuery& query) {
  SliceForecast forecast = rules_.forecast();
  std::set<std::string> nodes, ended;
  for (const RoomQuery::Ended& one : query.ended) nodes.insert(one.node), ended.insert(one.slice);
  for (const std::string& node : nodes) {
    auto living = slices(node);
    if (!living) return tl::unexpected(living.error());
    std::erase_if(*living, [&](const auto& named) { return ended.contains(named.first); });
    forecast.replace_slices(node, living_slices(*living));
  }
  for (const auto& [node, requested] : query.host_left) forecast.set_host_requested(node, requested);
  const auto place = forecast.place(query.choice, query.amounts, query.host);
  if (!place) return tl::unexpected(place.error());
  return {};
}

// The agent decides: it chooses the devices, and grants each request id only once.
Outcome<void> MachineEffects::grant(const api::SliceRequest& wanted, const std::string& name) {
  api::SliceRequest request = wanted;
  Amounts& amounts = request.amounts;
  if (!amounts.isolation && !amounts.exclusive) amounts.isolation = rules_.isolation_of(name);
  const auto node = node_named(name);
  if (!node) return tl::unexpected(node.error());
  slices_.erase(name);
  const auto granted = agent_of(**node).grant(request);
  if (!granted) return tl::unexpected(failure_of(name, granted.error()));
  return {};
}

Outcome<std::map<std::string, ObservedSlice>> MachineEffects::slices(const std::string& name) {
  const auto known = slices_.find(name);
  return known != slices_.end() ? known->second : slices_.emplace(name, list_slices(name)).first->second;
}

Outcome<std::map<std::string, ObservedSlice>> MachineEffects::list_slices(const std::string& name) const {
  const auto node = node_named(name);
  if (!node) return tl::unexpected(node.error());
  const auto list = agent_of(**node).slices();
  if (!list) return tl::unexpected(failure_of(name, list.error()));
  std::map<std::string, ObservedSlice> out;
  for (const api::Slice& slice : list->slices)
    if (slice.state != SliceState::ended) out[slice.name] = observed(slice);
  return out;
}

Outcome<void> MachineEffects::resize(const std::string& name, const std::string& slice,
                                     const api::SliceChange& change) {
  const auto node = node_named(name);
  if (!node) return tl::unexpected(node.error());
  slices_.erase(name);
  const auto changed = agent_of(**node).change(slice, change);
  if (!changed) return tl::unexpected(failure_of(name, changed.error()));
  return {};
}

Outcome<void> MachineEffects::end_slice(const std::string& name, const std::string& slice) {
  const auto node = node_named(name);
  if (!node) return tl::unexpected(node.error());
  slices_.erase(name);
  const auto ended = agent_of(**node).end(slice);
  if (ended) return {};
  const Failure failed = failure_of(name, ended.error());
  return failed.kind == FailureKind::not_found ? Outcome<void>() : tl::unexpected(failed);
}

Outcome<ObservedProgram> MachineEffects::program(const std::string& slice) {
  const auto seen = programs_.read(slice);
  if (!seen) return tl::unexpected(seen.error());
  const runner::SupervisorState& state = seen->state;
  ObservedProgram out{.attempt = state.attempt, .started_at = state.started_ns};
  switch (seen->phase()) {
    case runner::ProgramPhase::never_started: break;
    case runner::ProgramPhase::running:
      out.state = ProgramState::running;
      out.is_waiting = state.program_pid == 0;
      out.is_ending = ends_.has_ended(slice, {.pid = state.program_pid, .start = state.program_start});
      break;
    case runner::ProgramPhase::ended:
      out.state = ProgramState::exited;
      out.ended_at = state.ended_ns != 0 ? state.ended_ns : state.program_ended_ns;
      out.exit = runner::exit_text(state);
      out.exit_status = state.exit_status;
      break;
    case runner::ProgramPhase::lost:
      out.state = ProgramState::exited;
      out.ended_at = state.started_ns;
      out.exit = "its supervisor was killed";
      out.is_lost = true;
      break;
  }
  return out;
}

Outcome<void> MachineEffects::start(const ProgramStart& start) {
  if (!start.image.empty()) return launcher_.start(container_request(start, container_host()));
  LaunchRequest request{
      .uid = start.owner_uid,
      .name = start.slice,
      .limits = {.cpu_milli = start.cpu_limit_milli, .memory_bytes = start.memory_limit_bytes},
      .supervise = {.attempt = start.attempt,
                    .workdir = start.workdir,
                    .command = start.command,
                    .env = start.env,
                    .cleanup = start.cleanup}};
  if (!start.node.empty()) {
    const auto node = node_named(start.node);
    if (!node) return tl::unexpected(node.error());
    request.supervise.agent_socket = (*node)->socket;
    request.supervise.slice = start.slice;
  } else {
    hide_devices(request.supervise.env);
  }
  return launcher_.start(request);
}

Outcome<void> MachineEffects::terminate(const std::string& slice) {
  return launcher_.send_signal({.name = slice, .signal = SIGTERM});
}
Outcome<void> MachineEffects::kill(const std::string& slice) {
  return launcher_.send_signal({.name = slice, .signal = SIGKILL});
}

void MachineEffects::forget_program(const std::string& slice) {
  programs_.forget(slice);
  ends_.forget(slice);
  if (const auto removed = launcher_.remove({.name = slice}); !removed)
    os::log::warning(Cause{.who = "files of programs"}, "cannot remove the files of {}: {}", slice,
                     removed.error().message);
  owners_.remove(slice);
}

Outcome<void> MachineEffects::keep_owner(const std::string& program, const ProgramOwner& owner) {
  return owners_.write(program, owner);
}

std::set<std::string> MachineEffects::kept_programs() { return owners_.programs(); }

ProgramOwner MachineEffects::owner(const std::string& program) { return owners_.read(program); }

// Starts at a random port, so that other users cannot predict the next one and controllers of other users
// start elsewhere. Endpoints get the lowest free ports, because users read and type them.
Outcome<uint32_t> MachineEffects::free_port(PortUse use, const std::vector<uint32_t>& used) {
  const auto [first, last] = ports_of(use);
  const uint32_t count = last - first + 1;
  uint32_t offset = 0;
  if (use != PortUse::endpoint)
    invariant(getrandom(&offset, sizeof offset, 0) == sizeof offset, "the kernel has random bytes");
  ports_.keep(first, last, used);
  // If every port is reserved, the reservations are ignored.
  for (const bool reserves : {true, false})
    for (uint32_t i = 0; i < count; ++i) {
      const auto port = static_cast<uint32_t>(first + (uint64_t{offset} + i) % count);
      if (std::ranges::find(used, port) != used.end() || !is_port_free(port)) continue;
      if (!reserves || ports_.reserve(port)) return port;
    }
  return failure(FailureKind::resource_exhausted, "no port from {} to {} is free", first, last);
}

bool MachineEffects::is_free(uint32_t port) { return is_port_free(port); }

std::string MachineEffects::new_secret() {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  unsigned char bytes[43] = {};
  invariant(getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "the kernel has random bytes");
  std::string out;
  for (const unsigned char byte : bytes) out += letters[byte % letters.size()];
  return out;
}

std::optional<ProbeResult> MachineEffects::probe(const EndpointServer& server,
                                                 const objects::Readiness& readiness) {
  const auto seen = programs_.read(server.slice);
  if (!seen) return std::nullopt;
  return prober_.probe(server.slice, {.port = server.port,
                                      .path = readiness.http_get ? readiness.http_get->path : "",
                                      .period_ns = int64_t{readiness.period_seconds} * workload::second_ns,
                                      .timeout_ns = int64_t{readiness.timeout_seconds} * workload::second_ns,
                                      .supervisor = {.pid = seen->state.supervisor_pid,
                                                     .start = seen->state.supervisor_start}});
}

Outcome<void> MachineEffects::open_proxy() {
  if (haproxy_) return {};
  auto opened = HaProxy::open({.directory = proxy_folder_});
  if (!opened) return tl::unexpected(opened.error());
  haproxy_ = std::move(*opened);
  return {};
}

// Returns whether HAProxy serves exactly these endpoints and is not draining a server.
bool MachineEffects::is_published(const std::vector<ServiceEndpoint>& endpoints) const {
  if (endpoints != published_ || proxy_servers_.empty()) return false;
  size_t servers = 0;
  for (const ServiceEndpoint& endpoint : endpoints) servers += endpoint.servers.size();
  return proxy_servers_.size() == servers &&
         std::ranges::all_of(proxy_servers_, [](const ObservedServer& server) {
           return server.state == workload::EndpointState::serving;
         });
}

Outcome<void> MachineEffects::publish(const std::vector<ServiceEndpoint>& endpoints) {
  if (is_published(endpoints)) return {};
  if (const auto opened = open_proxy(); !opened) return endpoints.empty() ? Outcome<void>() : opened;
  std::vector<DesiredEndpoint> desired;
  for (const ServiceEndpoint& endpoint : endpoints) {
    DesiredEndpoint& out = desired.emplace_back();
    out = {.name_space = endpoint.name_space,
           .service = endpoint.name,
           .port = static_cast<uint16_t>(endpoint.port)};
    for (const EndpointServer& server : endpoint.servers)
      out.servers.push_back({.replica = server.slice, .port = static_cast<uint16_t>(server.port)});
  }
  published_.clear();
  const auto applied = haproxy_->apply(desired);
  if (applied) published_ = endpoints;
  return applied;
}

Outcome<std::map<std::string, workload::EndpointState>> MachineEffects::endpoint_states() {
  std::map<std::string, workload::EndpointState> out;
  if (!open_proxy()) return out;  // The next publish() reports the reason.
  auto observed = haproxy_->observe();
  if (!observed) return tl::unexpected(observed.error());
  for (const ObservedServer& server : observed->servers)
    if (auto& state = out[server.replica]; state != workload::EndpointState::serving) state = server.state;
  proxy_servers_ = std::move(observed->servers);
  const os::MutexLock lock(figures_mutex_);
  figures_ = std::move(observed->figures);
  return out;
}

std::optional<EndpointLoad> MachineEffects::load(const std::string& name_space, const std::string& name) {
  const os::MutexLock lock(figures_mutex_);
  const auto found = std::ranges::find_if(figures_, [&](const RequestFigures& figures) {
    return figures.name_space == name_space && figures.service == name;
  });
  if (found == figures_.end()) return std::nullopt;
  return EndpointLoad{.requests = found->requests, .in_flight = found->sessions + found->queued};
}

std::vector<RequestFigures> MachineEffects::figures() const {
  const os::MutexLock lock(figures_mutex_);
  return figures_;
}

}  // namespace carve::controller
