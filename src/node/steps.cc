#include "node/steps.h"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "node/api/routes.h"
#include "node/attach/attach_server.h"
#include "node/cdi/cdi.h"
#include "node/claims.h"
#include "node/devices/context_charge.h"
#include "node/doctor.h"
#include "node/guard_start.h"
#include "node/life/adopt.h"
#include "node/loop/runtime_files.h"
#include "node/slots/slot_sockets.h"
#include "node/start.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/kept_socket.h"
#include "os/log.h"
#include "os/service_watchdog.h"
#include "os/user.h"
#include "os/worker.h"

namespace carve::node {
namespace {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

sigset_t ending_signals() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGTERM);
  sigaddset(&out, SIGINT);
  return out;
}

std::vector<Device> devices_of(const std::vector<NodeDevice>& devices) {
  std::vector<Device> out;
  for (const NodeDevice& d : devices) out.push_back(d.device);
  return out;
}

// With a remembered inventory, running slices wait at most this long for their agent.
constexpr int64_t nvml_patience_ns = os::second;

std::string inventory_path(const Options& options) { return options.state + "/devices.json"; }

InventoryKey inventory_key(const Options& options, const Paths& paths) {
  return {.boot_id = os::boot_id(),
          .libnvml = paths.libnvml,
          .simulated = options.sim,
          .reserve = options.reserve ? std::to_string(options.reserve->count) : "",
          .topology = options.topology};
}

void remember(const Options& options, const Paths& paths, const Inventory& inventory) {
  const std::string text = write_inventory(inventory, inventory_key(options, paths));
  if (const auto kept = os::replace_file(inventory_path(options), text, 0600); !kept)
    os::log::warning("{}; the next start of the agent will have to wait for NVML", kept.error().message);
}

// Runs in the search's thread.
Outcome<FoundDevices> search_devices(const Options& options, const Paths& paths) {
  auto nvml = Nvml::open(paths.libnvml);
  if (!nvml) return tl::unexpected(nvml.error());
  auto devices = find_devices(**nvml, options, paths);
  if (!devices) return tl::unexpected(devices.error());
  auto topology = find_topology(**nvml, options, *devices);
  if (!topology) return tl::unexpected(topology.error());
  const std::vector<unsigned> lost = (*nvml)->lost_indexes();
  return FoundDevices{std::move(*nvml), {std::move(*devices), *topology, lost}};
}

// Each of the API's connections uses two descriptors. If there are few descriptors, most are reserved for the
// processes of slices.
constexpr size_t min_api_connections = 128, max_api_connections = 512;
constexpr size_t descriptors_for_each = 8;

constexpr int64_t operators_group_period_ns = 60 * os::second;

size_t api_connections() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return min_api_connections;
  return std::clamp<size_t>(files.rlim_cur / descriptors_for_each, min_api_connections, max_api_connections);
}

bool any_stopping(const Agent& agent) {
  return std::ranges::any_of(agent.slices({}),
                             [](const SliceView& s) { return s.state == SliceState::stopping; });
}

}  // namespace

class Sockets {
 public:
  Sockets(os::Loop& loop, const Options& options, Running& running, os::Fd attach, os::Fd api)
      : Sockets(loop, options, running.agent, std::move(attach), std::move(api)) {
    listeners_ = &running.node.attach_listeners;
    listeners_->open = [this, &loop, &agent = running.agent](const AttachPoint& point, os::Fd listener) {
      points_[point] = std::make_unique<AttachServer>(loop, agent, std::move(listener), point);
    };
    listeners_->close = [this](const AttachPoint& point) { points_.erase(point); };
    open_attach_points(running.node);
    files_.emplace(running.node);
    keep(options, running.node);
    loop.every(os::second, [this, &node = running.node] { check_files(node); });
  }
  ~Sockets() {
    if (listeners_ != nullptr) *listeners_ = {};
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  Outcome<void> listen_for_metrics(os::Loop& loop, const Options& options, Agent& agent) {
    os::TcpAddress address = *options.metrics;
    auto socket = os::listen_at(address);
    if (!socket) return failure(FailureKind::unavailable, "--metrics-listen {}", socket.error().message);
    metrics_.emplace(
        loop, std::move(*socket),
        http::Server::Hooks{
            .handle = [&agent](const auto& request, const auto&) { return answer_metrics(agent, request); },
            .refuse = refuse_bytes});
    os::log::info("metrics served at http://{}/metrics", os::text(address));
    return {};
  }

 private:
  Sockets(os::Loop& loop, const Options& options, Agent& agent, os::Fd attach, os::Fd api)
      : operators_{.uids = {0, geteuid()}, .group = options.operators_group},
        attach_(loop, agent, std::move(attach)),
        routes_(
            agent, [this, &agent] { return diagnose(agent, operators_); }, options.state + "/audit.jsonl"),
        api_(loop, std::move(api),
             {.handle = [this](const auto& request,
                               const auto& caller) { return routes_.answer(request, caller); },
              .refuse = refuse_bytes,
              .identify = [this, &agent](int socket) { return identify(agent, socket, operators_); },
              .connections = api_connections(),
              .streams = api_connections() / 4,
              .connections_from_uid = api_connections() / 4,
              .streams_from_peer = api_connections() / 16,
              .has_reserve = [this](uint32_t uid) { return operators_.includes(uid); }}) {
    const auto controller = options.controller_uid ? options.controller_uid : os::user_id("carve-controller");
    if (controller) operators_.uids.push_back(*controller);
    find_operators_group(loop);
  }

  // Looks up the group's id now and once a minute, because an administrator may create the group later.
  void find_operators_group(os::Loop& loop) {
    if (operators_.group.empty()) return;
    operators_.gid = os::group_id(operators_.group);
    const auto keep = [this](std::optional<uint32_t> gid) { operators_.gid = gid; };
    group_search_.emplace(os::WorkerSettings{
        .turn =
            [group = operators_.group, poster = loop.poster(), alive = std::weak_ptr(alive_), keep] {
              const auto gid = os::group_id(group);
              poster.post([alive, keep, gid] {
                if (alive.lock()) keep(gid);
              });
              return operators_group_period_ns;
            },
        .end_patience_ns = 0});
  }

  // Recreates the two sockets if their files are removed.
  void keep(const Options& options, NodeState& node) {
    const auto make_directory = [path = options.socket] {
      return os::make_directory(path.substr(0, path.rfind('/')), geteuid() == 0 ? 0755 : 0700);
    };
    const std::string attach = options.socket + shm::attach_suffix;
    kept_.emplace_back(
        attach,
        [attach, make_directory]() -> Outcome<os::Fd> {
          if (const auto made = make_directory(); !made) return tl::unexpected(made.error());
          return os::listen_at(attach, SOCK_SEQPACKET, 0666);
        },
        [this](os::Fd listener) { attach_.listen_at(std::move(listener)); });
    kept_.emplace_back(
        options.socket,
        [path = options.socket, make_directory]() -> Outcome<os::Fd> {
          if (const auto made = make_directory(); !made) return tl::unexpected(made.error());
          return open_api(path);
        },
        [this](os::Fd listener) { api_.listen_at(std::move(listener)); });
    check_files(node);
  }
  void check_files(NodeState& node) {
    for (os::KeptSocket& socket : kept_)
      if (const auto lost = socket.check()) node.event("", *lost);
    files_->check();
  }

  Operators operators_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // Shows posted calls that this object exists.
  std::optional<os::Worker> group_search_;
  std::vector<os::KeptSocket> kept_;
  std::optional<RuntimeFiles> files_;
  AttachServer attach_;
  std::map<AttachPoint, std::unique_ptr<AttachServer>> points_;
  AttachListeners* listeners_ = nullptr;
  Routes routes_;
  http::Server api_;
  std::optional<http::Server> metrics_;
};

void CloseSockets::operator()(Sockets* sockets) const { delete sockets; }

Surroundings surroundings() {
  char here[4096] = "/";
  if (getcwd(here, sizeof here) == nullptr) here[1] = '\0';
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  const std::string node = variable("NODE_NAME");
  return {.uid = geteuid(),
          .home = variable("HOME"),
          .xdg_runtime_dir = variable("XDG_RUNTIME_DIR"),
          .xdg_state_home = variable("XDG_STATE_HOME"),
          .working_directory = here,
          .host_name = node.empty() ? host : node};
}

int complain(const Failure& failure) {
  fmt::print(stderr, "carved: {}\n", failure.message);
  return failure.kind == FailureKind::invalid_argument ? 2 : 1;
}

std::optional<int> run_task(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help: return fputs(help_text().c_str(), stdout) < 0;
    case Options::Mode::version: return puts("carved " CARVE_VERSION) < 0;
    case Options::Mode::completion: return fputs(completion_script().c_str(), stdout) < 0;
    case Options::Mode::fd_store: return run_fd_store(options.fd_store_dir);
    case Options::Mode::inspect: return run_inspector(STDIN_FILENO);
    case Options::Mode::measure:
      return measure_context_child(options.measure_libcuda.c_str(), options.measure_uuid.c_str());
    case Options::Mode::agent: break;
  }
  return std::nullopt;
}

void prepare_process(const Options& options) {
  os::log::set_level(options.log_level);
  const sigset_t ending = ending_signals();
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  // Each process of a slice needs one descriptor.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

Outcome<Locks> lock(const Options& options) {
  if (const auto made = os::make_directory(options.state, 0700); !made) return tl::unexpected(made.error());
  const std::string socket_dir = options.socket.substr(0, options.socket.rfind('/'));
  if (const auto made = os::make_directory(socket_dir, geteuid() == 0 ? 0755 : 0700); !made)
    return tl::unexpected(made.error());
  const size_t length = options.socket.size() + std::string_view(shm::attach_suffix).size();
  if (length > os::max_socket_path_bytes)
    return failure(
        FailureKind::invalid_argument,
        "--socket {}: with '{}' the path has {} characters, and a unix socket's path has at most {}; use a "
        "shorter path",
        options.socket, shm::attach_suffix, length, os::max_socket_path_bytes);
  auto state = os::wait_for_lock(options.state + "/lock", "agent", "the state " + options.state);
  if (!state) return tl::unexpected(state.error());
  auto socket = os::wait_for_lock(options.socket + ".lock", "agent", "the socket " + options.socket);
  if (!socket) return tl::unexpected(socket.error());
  // The guest library may be preloaded into every process, including this one, where it must not find an
  // agent to attach to.
  unsetenv(shm::socket_variable);
  unlink((options.socket + shm::attach_suffix).c_str());
  return Locks{std::move(*state), std::move(*socket)};
}

Outcome<Machine> find_machine(const Options& options) {
  auto paths = find_paths(options);
  if (!paths) return tl::unexpected(paths.error());
  const std::string remembered = os::read_file(inventory_path(options)).value_or("");
  auto inventory = read_inventory(remembered, inventory_key(options, *paths));
  auto search =
      std::make_unique<DeviceSearch>([options, paths = *paths] { return search_devices(options, paths); });
  auto found = search->wait(inventory ? nvml_patience_ns : -1);
  if (found && !*found) return tl::unexpected(found->error());
  Machine out{.paths = *paths, .inventory = {}, .nvml = {}, .search = std::move(search), .claims = {}};
  if (found) {
    out.nvml = std::move((*found)->nvml);
    out.inventory = std::move((*found)->inventory);
    remember(options, *paths, out.inventory);
  } else {
    out.inventory = std::move(*inventory);
    os::log::warning(
        "NVML did not respond within {} s; the agent continues with the devices of its previous start",
        nvml_patience_ns / os::second);
    for (NodeDevice& d : out.inventory.devices)
      d.sample.health = {HealthState::unresponsive, "NVML has not responded since the agent started"};
  }
  auto claims = paths->sim_set.empty()
                    ? claim(devices_of(out.inventory.devices), claims_folder(surroundings()))
                    : claim_set(paths->sim_set);
  if (!claims) return tl::unexpected(claims.error());
  out.claims = std::move(*claims);
  return out;
}

Outcome<Stores> open_stores(const Options& options) {
  auto ledger = SqliteStore::open(options.state + "/ledger.db", os::utc_ns() / os::second);
  if (!ledger) return tl::unexpected(ledger.error());
  auto runtime = RuntimeDir::open(options.socket + ".run");
  if (!runtime) return tl::unexpected(runtime.error());
  auto fd_store = FdStore::reach(runtime->path());
  if (!fd_store) return tl::unexpected(fd_store.error());
  return Stores{std::move(*ledger), std::move(*runtime), std::move(*fd_store)};
}

Outcome<std::unique_ptr<Running>> adopt_slices(os::Loop& loop, const Options& options, const Machine& machine,
                                               Stores stores) {
  auto heartbeat = stores.runtime.heartbeat();
  if (!heartbeat) return tl::unexpected(heartbeat.error());
  shm::Heartbeat& page = **heartbeat;
  // The mapping keeps its address when it is moved into the state.
  auto heart = std::make_unique<Heart>(page, loop.turns());
  auto labels = NodeLabels::open(options.state + "/labels.json", options.labels);
  if (!labels) return tl::unexpected(labels.error());
  const auto unit = labels->memory_unit();
  if (unit && options.memory_unit && options.memory_unit != unit)
    return failure(
        FailureKind::failed_precondition,
        "--memory-unit {}: the label {} of this node sets {}; remove the label first (--label {}-)",
        text(*options.memory_unit), labels->key_of(LabelMeaning::memory_unit), text(*unit),
        labels->key_of(LabelMeaning::memory_unit));
  auto kept_settings =
      KeptSettings::open(options.state + "/settings.json", unit ? unit : options.memory_unit);
  if (!kept_settings) return tl::unexpected(kept_settings.error());
  auto limits = KeptLimits::open(options.state + "/limits.json");
  if (!limits) return tl::unexpected(limits.error());
  Settings settings = settings_of(options, machine.paths, machine.inventory.topology);
  if (const auto policy = labels->policy()) {
    if (options.policy && options.policy != policy)
      return failure(FailureKind::failed_precondition,
                     "--policy {}: the label {} of this node sets {}; remove the label first (--label {}-)",
                     text(*options.policy), labels->key_of(LabelMeaning::policy), text(*policy),
                     labels->key_of(LabelMeaning::policy));
    settings.policy = policy;
  }
  auto kernel_log = KernelLog::open(settings.kernel_log);
  if (!kernel_log)
    os::log::warning("{}; errors (Xid) are shown only for their device, not for a slice",
                     kernel_log.error().message);
  auto guard = start_guard(options, machine);
  if (!guard) return tl::unexpected(guard.error());
  auto running = std::make_unique<Running>(
      NodeState{.loop = loop,
                .settings = std::move(settings),
                .devices = machine.inventory.devices,
                .lost_indexes = machine.inventory.lost_indexes,
                .books = Books(std::move(stores.ledger.store)),
                .events = EventLog(static_cast<uint64_t>(os::utc_ns())),
                .labels = std::move(*labels),
                .kept_settings = std::move(*kept_settings),
                .limits = std::move(*limits),
                .pages = Pages(std::move(stores.runtime), std::move(stores.fd_store), std::move(*heartbeat)),
                .slices = {},
                .inspector = std::make_unique<Inspector>(loop, Inspector::Hooks{}),
                .guard = std::move(*guard),
                .compute = Compute(page),
                .kernel_log_trouble = kernel_log ? "" : kernel_log.error().message});
  running->heart = std::move(heart);
  if (kernel_log) running->node.kernel_log = std::move(*kernel_log);
  const std::string& moved_aside = stores.ledger.moved_aside;
  if (!moved_aside.empty()) {
    os::log::error(
        "the ledger was damaged ({}); it was moved to {}, and a new one is rebuilt from the running slices",
        stores.ledger.damage, moved_aside);
    running->node.event("",
                        "ledger: damaged, moved to " + moved_aside + " and rebuilt from the running slices");
  }
  if (const auto adopted = adopt_slices(running->node, running->lifecycle); !adopted)
    return tl::unexpected(adopted.error());
  running->node.kept_settings.settle(running->node.memory_unit_holders());
  running->guard_watch.start();
  return running;
}

namespace {

void begin_sampling(Running& running, Measurement& measurement) {
  std::vector<unsigned> indexes;
  for (const NodeDevice& d : running.node.devices) indexes.push_back(d.device.index);
  measurement.sampler = std::make_unique<Sampler>(running.node.loop, *measurement.nvml, indexes);
  running.node.process_lists_trouble = measurement.nvml->process_lists_trouble();
  running.reconcile_loop.sample_with(*measurement.sampler);
}

// Handles NVML's result, which may arrive late.
void take(os::Loop& loop, Running& running, Measurement& measurement, Outcome<FoundDevices> found) {
  if (!found) {
    running.node.event("", "cannot measure the devices: " + found.error().message);
    for (NodeDevice& d : running.node.devices) d.sample.health.reason = found.error().message;
    return;
  }
  measurement.nvml = std::move(found->nvml);
  if (are_same_devices(running.node.devices, found->inventory.devices)) {
    running.node.event("", "NVML responded; the devices have not changed since the agent's previous start");
    return begin_sampling(running, measurement);
  }
  os::log::error("NVML reports different devices than at the agent's previous start; restarting the agent");
  measurement.devices_changed = true;
  loop.stop();
}

}  // namespace

std::unique_ptr<Measurement> start_sampler(os::Loop& loop, const Options& options, Running& running,
                                           Machine& machine) {
  auto out = std::make_unique<Measurement>();
  out->nvml = std::move(machine.nvml);
  out->search = std::move(machine.search);
  running.reconcile_loop.start();
  if (out->nvml) {
    begin_sampling(running, *out);
    return out;
  }
  out->search->when_found(loop, [&loop, &running, &options, &paths = machine.paths,
                                 measurement = out.get()](Outcome<FoundDevices> found) {
    if (found) remember(options, paths, found->inventory);
    take(loop, running, *measurement, std::move(found));
  });
  return out;
}

Outcome<std::unique_ptr<Sockets, CloseSockets>> open_sockets(os::Loop& loop, const Options& options,
                                                             Running& running) {
  auto attach = os::listen_at(options.socket + shm::attach_suffix, SOCK_SEQPACKET, 0666);
  if (!attach) return tl::unexpected(attach.error());
  if (const auto published = publish_attach_socket(options.socket); !published)
    return tl::unexpected(published.error());
  auto api = open_api(options.socket);
  if (!api) return tl::unexpected(api.error());
  std::unique_ptr<Sockets, CloseSockets> out(
      new Sockets(loop, options, running, std::move(*attach), std::move(*api)));
  if (options.metrics)
    if (const auto listens = out->listen_for_metrics(loop, options, running.agent); !listens)
      return tl::unexpected(listens.error());
  return out;
}

int serve(os::Loop& loop, const Options& options, const Agent& agent, const Measurement& measurement) {
  const sigset_t ending = ending_signals();
  const os::Fd signals(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) {
    loop.forget(signals.get());
    // Slices that are stopping get at most 300 ms to end before the loop stops.
    loop.every(10 * os::millisecond, [&, until = os::monotonic_ns() + 300 * os::millisecond] {
      if (!any_stopping(agent) || os::monotonic_ns() > until) loop.stop();
    });
    if (!any_stopping(agent)) loop.stop();
  });
  os::report_to_watchdog(loop);
  os::log::report_left_out(loop);
  const size_t devices = agent.devices().size();
  os::log::info("carved {} serves {} device{} at {}{}", CARVE_VERSION, devices, devices == 1 ? "" : "s",
                options.socket, options.sim.empty() ? "" : " (simulated)");
  loop.run();

  os::log::write_left_out();
  const size_t running_on = agent.slices({}).size();
  os::log::info("agent ended; {} slices keep running within their quotas", running_on);
  unlink(options.socket.c_str());
  if (running_on == 0) unlink((options.socket + shm::attach_suffix).c_str());
  if (measurement.devices_changed) return 0;
  if (measurement.is_waiting()) _exit(0);  // A driver call may never return, and nothing else is left to do.
  return 0;
}

int start_again(char** argv) {
  // The parent that restarts the agent must stay.
  char** kept = argv;
  for (char** word = argv; *word != nullptr; ++word)
    if (std::string_view(*word) != "--restart-after-crash") *kept++ = *word;
  *kept = nullptr;
  execv("/proc/self/exe", argv);
  os::log::error("cannot execute the agent again: {}", strerror(errno));
  return 1;
}

}  // namespace carve::node
