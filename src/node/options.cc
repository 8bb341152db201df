// carved's command line: the parts that concern more than one option. The rules for each value are in
// option_table.cc.
#include "node/options.h"

#include <string_view>

#include "node/option_table.h"
#include "os/clock.h"

namespace carve::node {
namespace {

void fill_defaults(Options& o, const Surroundings& s) {
  if (o.state.empty()) {
    if (s.uid == 0)
      o.state = "/var/lib/carve";
    else
      o.state = (s.xdg_state_home.empty() ? s.home + "/.local/state" : s.xdg_state_home) + "/carve";
  }
  if (o.socket.empty()) {
    if (s.uid == 0)
      o.socket = "/run/carve/carved.sock";
    else if (!s.xdg_runtime_dir.empty())
      o.socket = s.xdg_runtime_dir + "/carve/carved.sock";
    else
      o.socket = fmt::format("/tmp/carve-{}/carved.sock", s.uid);
  }
  o.state = os::absolute(o.state, s.working_directory);
  o.socket = os::absolute(o.socket, s.working_directory);
  // Container engines of other users do not read this directory, but slices that outlive their processes can
  // be created anyway.
  if (o.cdi_dir.empty())
    o.cdi_dir = s.uid == 0 ? "/var/run/cdi" : o.socket.substr(0, o.socket.rfind('/')) + "/cdi";
  o.cdi_dir = os::absolute(o.cdi_dir, s.working_directory);
  o.topology = os::absolute(o.topology, s.working_directory);
  o.driver_root = os::absolute(o.driver_root, s.working_directory);
  o.libraries = os::absolute(o.libraries, s.working_directory);
}

const os::CommandLine& line() {
  static const os::CommandLine line = os::command_line(
      "carved",
      "carved: the Carve node agent. It divides this node's GPUs into slices and enforces their limits.",
      "SIGTERM and SIGINT end the agent; slices keep running within their quotas, and the next agent adopts "
      "them.\n"
      "Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; the reason is on "
      "stderr.\n"
      "  carved --sim a10x2 --strategy spread",
      option_rows);
  return line;
}

// Checks the rules between options.
Outcome<void> consistent(const Options& o) {
  if (o.start_delay_ns != 0 && o.sim.empty())
    return failure(FailureKind::invalid_argument,
                   "--start-delay requires --sim, because the start time of real devices cannot be set");
  if (o.metrics_any && !o.metrics)
    return failure(FailureKind::invalid_argument, "--metrics-listen-any requires --metrics-listen HOST:PORT");
  if (o.metrics && !o.metrics_any && !os::is_loopback(*o.metrics))
    return failure(FailureKind::invalid_argument,
                   "--metrics-listen {}: metrics contain every slice's name, so only loopback addresses are "
                   "allowed; use one, or add --metrics-listen-any",
                   o.metrics->host);
  return {};
}

}  // namespace

std::string help_text() { return line().help(); }

std::string completion_script() { return line().completion(); }

Settings settings_of(const Options& o, const Paths& paths, const std::optional<place::Topology>& topology) {
  return {
      .socket = o.socket,
      .state = o.state,
      .cdi_dir = o.cdi_dir,
      .strategy = o.strategy,
      .bookkeeper = o.bookkeeper,
      .contexts_in_slice = o.contexts_in_slice,
      .spill_limit = o.spill_limit,
      .audit = o.audit,
      .over_quota = o.over_quota,
      .paths = paths,
      .policy = o.policy,
      .policy_per_slice = o.policy_per_slice,
      .admit_best_effort = o.admit_best_effort,
      .dcgm_names = o.dcgm_names,
      .overcommit_compute = o.overcommit_compute,
      .ready_at_ns = o.start_delay_ns == 0 ? 0 : os::monotonic_ns() + static_cast<int64_t>(o.start_delay_ns),
      .host_name = o.host_name,
      .kernel_log = !o.kernel_log.empty()   ? o.kernel_log
                    : paths.sim_set.empty() ? "/dev/kmsg"
                                            : paths.sim_set + "/kernel.log",
      .topology = topology};
}

Outcome<Options> parse_options(int argc, char** argv, const Surroundings& surroundings) {
  Options o;
  // The agent executes its own program again for two short tasks (node/pages/fd_store.h,
  // devices/context_charge.h) and one long-running task (inspect/inspector.h).
  if (argc == 2 && std::string_view(argv[1]) == "--inspect-processes") {
    o.mode = Options::Mode::inspect;
    return o;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--fd-store") {
    o.mode = Options::Mode::fd_store;
    o.fd_store_dir = argv[2];
    return o;
  }
  if (argc == 4 && std::string_view(argv[1]) == "--measure-context") {
    o.mode = Options::Mode::measure;
    o.measure_libcuda = argv[2];
    o.measure_uuid = argv[3];
    return o;
  }
  const auto parsed = line().parse(
      argc, argv, [&](size_t row, const std::string& value) { return option_rows[row].store(o, value); },
      [&] { return o.mode != Options::Mode::agent; });
  if (!parsed) return tl::unexpected(parsed.error());
  if (o.mode != Options::Mode::agent) return o;
  if (const auto good = consistent(o); !good) return tl::unexpected(good.error());
  fill_defaults(o, surroundings);
  o.host_name = surroundings.host_name;
  return o;
}

}  // namespace carve::node
