#include "node/steps.h"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "node/api/routes.h"
#include "node/attach/attach_server.h"
#include "node/cdi/cdi.h"
#include "node/devices/context_charge.h"
#include "node/doctor.h"
#include "node/slice/adopt.h"
#include "node/slice/slot_sockets.h"
#include "node/start.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/log.h"
#include "os/user.h"

namespace carve::node {
namespace {

using K = FailureKind;

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

bool any_stopping(const Agent& agent) {
  return std::ranges::any_of(agent.slices({}),
                             [](const SliceView& s) { return s.state == SliceState::stopping; });
}

}  // namespace

class Sockets {
 public:
  Sockets(os::Loop& loop, const Options& options, Running& running, os::Fd attach, os::Fd api)
      : Sockets(loop, options, running.agent, std::move(attach), std::move(api)) {
    listeners_ = &running.node.slot_listeners;
    listeners_->open = [this, &loop, &agent = running.agent](ContainerSlot slot, os::Fd listener) {
      slots_[slot] = std::make_unique<AttachServer>(loop, agent, std::move(listener), slot);
    };
    listeners_->close = [this](ContainerSlot slot) { slots_.erase(slot); };
    open_slots(running.node);
  }
  ~Sockets() {
    if (listeners_ != nullptr) *listeners_ = {};
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  Outcome<void> listen_for_metrics(os::Loop& loop, const Options& options, Agent& agent) {
    os::TcpAddress address = *options.metrics;
    auto socket = os::listen_at(address);
    if (!socket) return failure(K::unavailable, "--metrics-listen {}", socket.error().sentence);
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
      : operators_{0, geteuid()},
        attach_(loop, agent, std::move(attach)),
        routes_(agent, [&agent] { return diagnose(agent); }),
        api_(loop, std::move(api),
             {.handle = [this](const auto& request,
                               const auto& caller) { return routes_.answer(request, caller); },
              .refuse = refuse_bytes,
              .identify = [this](int socket) { return identify(socket, operators_); }}) {
    const auto controller = options.controller_uid ? options.controller_uid : os::user_id("carve-controller");
    if (controller) operators_.push_back(*controller);
  }

  std::vector<uint32_t> operators_;
  AttachServer attach_;
  std::map<ContainerSlot, std::unique_ptr<AttachServer>> slots_;
  SlotListeners* listeners_ = nullptr;
  Routes routes_;
  http::Server api_;
  std::optional<http::Server> metrics_;
};

void CloseSockets::operator()(Sockets* sockets) const { delete sockets; }

Surroundings surroundings() {
  char here[4096] = "/";
  if (getcwd(here, sizeof here) == nullptr) here[1] = '\0';
  return {geteuid(), variable("HOME"), variable("XDG_RUNTIME_DIR"), variable("XDG_STATE_HOME"), here};
}

int complain(const Failure& failure) {
  fmt::print(stderr, "carved: {}\n", failure.sentence);
  return failure.kind == K::invalid_argument ? 2 : 1;
}

std::optional<int> run_task(const Options& options) {
  switch (options.mode) {
    case Options::Mode::help: return fputs(help_text().c_str(), stdout) < 0;
    case Options::Mode::version: return puts("carved " CARVE_VERSION) < 0;
    case Options::Mode::completion: return fputs(completion_script().c_str(), stdout) < 0;
    case Options::Mode::fd_store: return run_fd_store(options.fd_store_dir);
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
        K::invalid_argument,
        "--socket {}: with '{}' the path has {} characters, and a unix socket's path has at most {}; use a "
        "shorter path",
        options.socket, shm::attach_suffix, length, os::max_socket_path_bytes);
  auto state = os::wait_for_lock(options.state + "/lock", "agent", "the state " + options.state);
  if (!state) return tl::unexpected(state.error());
  auto socket = os::wait_for_lock(options.socket + ".lock", "agent", "the socket " + options.socket);
  if (!socket) return tl::unexpected(socket.error());
  // The guest library may be preloaded into every process, also into this one. It must not find an agent to
  // attach to.
  unsetenv(shm::socket_variable);
  unlink((options.socket + shm::attach_suffix).c_str());
  return Locks{std::move(*state), std::move(*socket)};
}

Outcome<Machine> find_machine(const Options& options) {
  auto paths = find_paths(options);
  if (!paths) return tl::unexpected(paths.error());
  auto nvml = Nvml::open(paths->libnvml);
  if (!nvml) return tl::unexpected(nvml.error());
  auto devices = find_devices(**nvml, options, *paths);
  if (!devices) return tl::unexpected(devices.error());
  auto topology = find_topology(**nvml, options, *devices);
  if (!topology) return tl::unexpected(topology.error());
  auto claims = claim(names_of(devices_of(*devices), *paths));
  if (!claims) return tl::unexpected(claims.error());
  return Machine{std::move(*paths), std::move(*nvml), std::move(*devices), *topology, std::move(*claims)};
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
  auto labels = NodeLabels::open(options.state + "/labels.json", options.labels);
  if (!labels) return tl::unexpected(labels.error());
  auto kept_settings = KeptSettings::open(options.state + "/settings.json", options.memory_unit);
  if (!kept_settings) return tl::unexpected(kept_settings.error());
  Settings settings = settings_of(options, machine.paths, machine.topology);
  if (const auto policy = labels->policy()) {
    if (options.policy && options.policy != policy)
      return failure(K::failed_precondition,
                     "--policy {}: the label {} sets {}; remove the label first (--label {}-)",
                     text(*options.policy), policy_label, text(*policy), policy_label);
    settings.policy = policy;
  }
  auto kernel_log = KernelLog::open(settings.kernel_log);
  if (!kernel_log)
    os::log::warning("{}; an error (Xid) is shown for its device only", kernel_log.error().sentence);
  auto running = std::make_unique<Running>(
      NodeState{.loop = loop,
                .settings = std::move(settings),
                .devices = machine.devices,
                .books = Books(std::move(stores.ledger.store)),
                .events = EventLog(static_cast<uint64_t>(os::utc_ns())),
                .labels = std::move(*labels),
                .kept_settings = std::move(*kept_settings),
                .pages = Pages(std::move(stores.runtime), std::move(stores.fd_store), std::move(*heartbeat)),
                .slices = {},
                .compute = Compute(page),
                .kernel_log_trouble = kernel_log ? "" : kernel_log.error().sentence});
  if (kernel_log) running->node.kernel_log = std::move(*kernel_log);
  const std::string& moved_aside = stores.ledger.moved_aside;
  if (!moved_aside.empty()) {
    os::log::error(
        "the ledger was damaged ({}); it was moved to {}, and a new one is rebuilt from the running slices",
        stores.ledger.damage, moved_aside);
    running->node.event("",
                        "ledger: damaged, moved to " + moved_aside + " and rebuilt from the running slices");
  }
  if (const auto adopted = adopt_slices(running->node, running->lifecycle, !moved_aside.empty()); !adopted)
    return tl::unexpected(adopted.error());
  running->node.kept_settings.settle(running->node.memory_unit_holders());
  return running;
}

std::unique_ptr<Sampler> start_sampler(Running& running, const Machine& machine) {
  std::vector<unsigned> indexes;
  for (const NodeDevice& d : machine.devices) indexes.push_back(d.device.index);
  auto sampler = std::make_unique<Sampler>(*machine.nvml, indexes);
  running.reconcile_loop.start(*sampler);
  return sampler;
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

int serve(os::Loop& loop, const Options& options, const Agent& agent, const Sampler& sampler) {
  const sigset_t ending = ending_signals();
  const os::Fd signals(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) {
    loop.forget(signals.get());
    // Slices that are stopping get at most 300 ms to end, then the loop stops.
    loop.every(10 * os::millisecond, [&, until = os::monotonic_ns() + 300 * os::millisecond] {
      if (!any_stopping(agent) || os::monotonic_ns() > until) loop.stop();
    });
    if (!any_stopping(agent)) loop.stop();
  });
  const size_t devices = agent.devices().size();
  os::log::info("carved {} serves {} device{} at {}{}", CARVE_VERSION, devices, devices == 1 ? "" : "s",
                options.socket, options.sim.empty() ? "" : " (simulated)");
  loop.run();

  const size_t running_on = agent.slices({}).size();
  os::log::info("agent ended; {} slices run on inside their quotas", running_on);
  unlink(options.socket.c_str());
  if (running_on == 0) unlink((options.socket + shm::attach_suffix).c_str());
  if (sampler.under_way_since_ns() != 0) _exit(0);  // A driver call may never return, and no work is left.
  return 0;
}

}  // namespace carve::node
