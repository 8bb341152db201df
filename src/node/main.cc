// carved: the node agent. From top to bottom: what this machine has, what was promised, who still runs, and
// only then the doors.
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "node/attach/attach.h"
#include "node/cdi/cdi.h"
#include "node/devices/context_charge.h"
#include "node/os/clock.h"
#include "node/os/log.h"
#include "node/serve/routes.h"
#include "node/start.h"
#include "node/store/sqlite_store.h"

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

// Carries a sentence out of serve() to main().
#define OR_SAY(name, expression) \
  auto name = expression;        \
  if (!name) return said(name.error())

int serve(const Options& options) {
  // The set of devices is fixed from here on, and they are ours alone.
  OR_SAY(state, make_directory(options.state, 0700));
  const std::string socket_dir = options.socket.substr(0, options.socket.rfind('/'));
  OR_SAY(sockets, make_directory(socket_dir, geteuid() == 0 ? 0755 : 0700));
  if (options.socket.size() + sizeof ".attach" - 1 > max_socket_path_bytes)
    return said(
        {FailureKind::invalid_argument,
         fmt::format("--socket {}: with '.attach' it has {} characters; a unix socket's path has at most {}",
                     options.socket, options.socket.size() + 7, max_socket_path_bytes)});
  OR_SAY(state_lock, hold_lock(options.state + "/lock", "the state " + options.state));
  OR_SAY(socket_lock, hold_lock(options.socket + ".lock", "the socket " + options.socket));
  // The library may be preloaded into everything on this machine, so into us: it must find nobody to ask.
  unsetenv(shm::socket_variable);
  unlink((options.socket + shm::attach_suffix).c_str());
  OR_SAY(paths, find_paths(options));
  OR_SAY(nvml, Nvml::open(paths->libnvml));
  OR_SAY(devices, find_devices(**nvml, options, *paths));
  OR_SAY(topology, find_topology(**nvml, options, *devices));
  std::vector<Device> plain;
  for (const NodeDevice& d : *devices) plain.push_back(d.device);
  OR_SAY(claimed, claim(names_of(plain, *paths)));

  // What was promised is known from here on: the ledger is open, the pages and their fd store are at hand.
  OR_SAY(ledger, SqliteStore::open(options.state + "/ledger.db", utc_ns() / second));
  OR_SAY(runtime, RuntimeDir::open(options.socket + ".run"));
  OR_SAY(fd_store, FdStore::reach(runtime->path()));
  Loop loop;
  const Settings settings{options.socket,
                          options.state,
                          options.cdi_dir,
                          options.strategy,
                          options.contexts_in_slice,
                          options.audit,
                          options.over_quota,
                          *paths,
                          options.policy,
                          options.labels,
                          options.policy_per_slice,
                          options.admit_best_effort,
                          options.overcommit_compute,
                          *topology};
  Agent agent(loop, settings, std::move(*devices), std::move(*runtime), std::move(*fd_store),
              std::move(ledger->store));
  if (!ledger->moved_aside.empty()) {
    log::error("THE LEDGER WAS DAMAGED ({}). It lies at {}; a new one is built from what runs",
               ledger->damage, ledger->moved_aside);
    agent.event("",
                "the ledger was damaged, lies at " + ledger->moved_aside + " and was rebuilt from what runs");
  }
  OR_SAY(adopted, agent.adopt(!ledger->moved_aside.empty()));

  // Everybody who lives is known from here on, and watched.
  std::vector<unsigned> indexes;
  for (const Device& d : plain) indexes.push_back(d.index);
  Sampler sampler(**nvml, indexes);
  agent.begin(sampler);

  // Signals end the loop; a slice that hangs up must not end us.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  const Fd signals(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.watch(signals.get(), EPOLLIN, [&](uint32_t) {
    loop.forget(signals.get());
    // What was just told to end is seen to its end; nobody waits longer than that.
    loop.every(10 * millisecond, [&, until = monotonic_ns() + 300 * millisecond] {
      if (!agent.any_stopping() || monotonic_ns() > until) loop.stop();
    });
    if (!agent.any_stopping()) loop.stop();
  });

  // The doors: from here on anybody may ask.
  OR_SAY(attach_socket, listen_at(options.socket + shm::attach_suffix, SOCK_SEQPACKET, 0666));
  OR_SAY(door_opened, publish_attach_socket(options.socket));
  OR_SAY(api_socket, open_api(options.socket));
  AttachServer attach(loop, agent, std::move(*attach_socket));
  Routes routes(agent);
  HttpServer api(loop, std::move(*api_socket),
                 [&](const HttpRequest& r, Peer& p) { return routes.answer(r, p); });
  std::optional<HttpServer> metrics;
  if (!options.metrics_host.empty()) {
    uint16_t port = options.metrics_port;
    OR_SAY(metrics_socket, open_metrics(options.metrics_host, port));
    metrics.emplace(
        loop, std::move(*metrics_socket),
        [&](const HttpRequest& r, Peer&) { return answer_metrics(agent, r); }, false);
    const bool six = options.metrics_host.find(':') != std::string::npos;
    log::info("metrics at http://{}:{}/metrics",
              six ? "[" + options.metrics_host + "]" : options.metrics_host, port);
  }
  log::info("carved {} serves {} device{} at {}{}", CARVE_VERSION, plain.size(), plain.size() == 1 ? "" : "s",
            options.socket, options.sim.empty() ? "" : " (simulated)");
  loop.run();

  log::info("ending; {} slices run on inside their quotas", agent.slices().size());
  agent.leave();
  unlink(options.socket.c_str());
  if (agent.slices().empty()) unlink((options.socket + shm::attach_suffix).c_str());
  if (sampler.under_way_since_ns() != 0)
    _exit(0);  // A sick driver may never return, and nothing is left to do.
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
    case Options::Mode::help: return fputs(help_text, stdout) < 0;
    case Options::Mode::version: return puts("carved " CARVE_VERSION) < 0;
    case Options::Mode::fd_store: return run_fd_store(options->fd_store_dir);
    case Options::Mode::measure:
      return measure_context_child(options->measure_libcuda.c_str(), options->measure_uuid.c_str());
    case Options::Mode::agent: break;
  }
  if (!log::set_level(options->log_level))
    return said({carve::FailureKind::invalid_argument,
                 fmt::format("--log-level {}: it is error, warning, info or debug", options->log_level)});
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  // Each process in a slice costs a descriptor.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  return serve(*options);
}
