// carved: the node agent. It starts in this order: find the devices, open the ledger, adopt the running
// slices, and only then open the sockets.
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "node/api/routes.h"
#include "node/attach/attach.h"
#include "node/cdi/cdi.h"
#include "node/devices/context_charge.h"
#include "node/doctor.h"
#include "node/start.h"
#include "node/store/sqlite_store.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/log.h"
#include "os/user.h"

namespace carve::node {
namespace {

std::string variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

Surroundings surroundings() {
  char here[4096] = "/";
  if (getcwd(here, sizeof here) == nullptr) here[1] = '\0';
  return {geteuid(), variable("HOME"), variable("XDG_RUNTIME_DIR"), variable("XDG_STATE_HOME"), here};
}

int said(const Failure& f) {
  fmt::print(stderr, "carved: {}\n", f.sentence);
  return f.kind == FailureKind::invalid_argument ? 2 : 1;
}

// Returns from serve() with the exit status of the failure, after printing its sentence.
#define OR_SAY(name, expression) \
  auto name = expression;        \
  if (!name) return said(name.error())

int serve(const Options& options) {
  // Lock the state and the socket, then find the devices. Beyond this point the set of devices is fixed, and
  // no other agent uses them.
  OR_SAY(state, os::make_directory(options.state, 0700));
  const std::string socket_dir = options.socket.substr(0, options.socket.rfind('/'));
  OR_SAY(sockets, os::make_directory(socket_dir, geteuid() == 0 ? 0755 : 0700));
  if (options.socket.size() + sizeof ".attach" - 1 > os::max_socket_path_bytes)
    return said({FailureKind::invalid_argument,
                 fmt::format("--socket {}: with '.attach' the path has {} characters, and a unix socket's "
                             "path has at most {}; use a shorter path",
                             options.socket, options.socket.size() + 7, os::max_socket_path_bytes)});
  OR_SAY(state_lock, os::hold_lock(options.state + "/lock", "agent", "the state " + options.state));
  OR_SAY(socket_lock, os::hold_lock(options.socket + ".lock", "agent", "the socket " + options.socket));
  // The guest library may be preloaded into every process, also into this one. It must not find an agent to
  // attach to.
  unsetenv(shm::socket_variable);
  unlink((options.socket + shm::attach_suffix).c_str());
  OR_SAY(paths, find_paths(options));
  OR_SAY(nvml, Nvml::open(paths->libnvml));
  OR_SAY(devices, find_devices(**nvml, options, *paths));
  OR_SAY(topology, find_topology(**nvml, options, *devices));
  std::vector<Device> plain;
  for (const NodeDevice& d : *devices) plain.push_back(d.device);
  OR_SAY(claimed, claim(names_of(plain, *paths)));

  // Open the ledger, the runtime directory and the fd store. Beyond this point every earlier grant is known.
  OR_SAY(ledger, SqliteStore::open(options.state + "/ledger.db", os::utc_ns() / os::second));
  OR_SAY(runtime, RuntimeDir::open(options.socket + ".run"));
  OR_SAY(fd_store, FdStore::reach(runtime->path()));
  os::Loop loop;
  Agent agent(loop, settings_of(options, *paths, *topology), std::move(*devices), std::move(*runtime),
              std::move(*fd_store), std::move(ledger->store));
  if (!ledger->moved_aside.empty()) {
    os::log::error(
        "the ledger was damaged ({}); it was moved to {}, and a new one is rebuilt from the running slices",
        ledger->damage, ledger->moved_aside);
    agent.event("",
                "ledger: damaged, moved to " + ledger->moved_aside + " and rebuilt from the running slices");
  }
  OR_SAY(adopted, agent.adopt(!ledger->moved_aside.empty()));

  // Every running slice is adopted. Beyond this point every living process is watched.
  std::vector<unsigned> indexes;
  for (const Device& d : plain) indexes.push_back(d.index);
  Sampler sampler(**nvml, indexes);
  agent.begin(sampler);

  // Signals end the loop. SIGPIPE is ignored, so a closed connection does not end the agent.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  const os::Fd signals(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) {
    loop.forget(signals.get());
    // Slices that are stopping get at most 300 ms to end, then the loop stops.
    loop.every(10 * os::millisecond, [&, until = os::monotonic_ns() + 300 * os::millisecond] {
      if (!agent.any_stopping() || os::monotonic_ns() > until) loop.stop();
    });
    if (!agent.any_stopping()) loop.stop();
  });

  // Open the sockets. Beyond this point callers arrive.
  OR_SAY(attach_socket, os::listen_at(options.socket + shm::attach_suffix, SOCK_SEQPACKET, 0666));
  OR_SAY(attach_published, publish_attach_socket(options.socket));
  OR_SAY(api_socket, open_api(options.socket));
  AttachServer attach(loop, agent, std::move(*attach_socket));
  Routes routes(agent, [&] { return diagnose(agent); });
  std::vector<uint32_t> operators{0, geteuid()};
  if (const auto controller =
          options.controller_uid ? options.controller_uid : os::user_id("carve-controller"))
    operators.push_back(*controller);
  http::Server api(
      loop, std::move(*api_socket),
      {.handle = [&](const auto& request, const auto& caller) { return routes.answer(request, caller); },
       .refuse = refuse_bytes,
       .identify = [&](int socket) { return identify(socket, operators); }});
  std::optional<http::Server> metrics;
  if (options.metrics) {
    os::TcpAddress address = *options.metrics;
    auto metrics_socket = os::listen_at(address);
    if (!metrics_socket)
      return said({FailureKind::unavailable, "--metrics-listen " + metrics_socket.error().sentence});
    metrics.emplace(loop, std::move(*metrics_socket),
                    http::Server::Hooks{.handle = [&](const auto& request,
                                                      const auto&) { return answer_metrics(agent, request); },
                                        .refuse = refuse_bytes});
    os::log::info("metrics served at http://{}/metrics", os::text(address));
  }
  os::log::info("carved {} serves {} device{} at {}{}", CARVE_VERSION, plain.size(),
                plain.size() == 1 ? "" : "s", options.socket, options.sim.empty() ? "" : " (simulated)");
  loop.run();

  os::log::info("agent ended; {} slices run on inside their quotas", agent.slices().size());
  agent.leave();
  unlink(options.socket.c_str());
  if (agent.slices().empty()) unlink((options.socket + shm::attach_suffix).c_str());
  if (sampler.under_way_since_ns() != 0) _exit(0);  // A driver call may never return, and no work is left.
  return 0;
}

}  // namespace
}  // namespace carve::node

int main(int argc, char** argv) {
  using namespace carve::node;
  umask(022);
  signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);

  const auto options = parse_options(argc, argv, surroundings());
  if (!options) return said(options.error());
  switch (options->mode) {
    case Options::Mode::help: return fputs(help_text().c_str(), stdout) < 0;
    case Options::Mode::version: return puts("carved " CARVE_VERSION) < 0;
    case Options::Mode::completion: return fputs(completion_script().c_str(), stdout) < 0;
    case Options::Mode::fd_store: return run_fd_store(options->fd_store_dir);
    case Options::Mode::measure:
      return measure_context_child(options->measure_libcuda.c_str(), options->measure_uuid.c_str());
    case Options::Mode::agent: break;
  }
  carve::os::log::set_level(options->log_level);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  // Each process of a slice needs one descriptor.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  return serve(*options);
}
