#include "node/options.h"

#include <string_view>

namespace carve::node {

const char* const help_text =
    R"(carved: the Carve node agent. Cuts this machine's GPUs into slices and keeps tenants inside them.

  carved [OPTIONS]

  --sim SPEC|FILE        simulate devices instead of using real ones: a10x2, demo15, a10x2,t4x1, or a YAML file
  --state DIR            where the ledger lies
                         (root: /var/lib/carve; else $XDG_STATE_HOME/carve or ~/.local/state/carve)
  --socket PATH          where the API listens; PATH.attach is the tenants' socket, PATH.run/ their pages
                         (root: /run/carve/carved.sock; else $XDG_RUNTIME_DIR/carve/carved.sock, or
                         /tmp/carve-UID/carved.sock)
  --strategy NAME        binpack (default): fill one device before the next; spread: the emptiest first
  --reserve SIZE         keep this much of each device back, instead of what the driver calls reserved
  --context-charge WHOM  slice (default): contexts count against the slice's quota; reserve: against the
                         device's reserve
  --audit ACT            a process of a slice holds device memory behind the library's back: report it
                         (default), freeze its slice (carve thaw NAME lets it go on), kill the process
  --over-quota ACT       memory that no call asked for takes a slice beyond its quota: refuse it further
                         allocations (default), report only, kill the slice
  --cdi-dir DIR          where slices for containers are announced (default /var/run/cdi)
  --log-level LEVEL      error, warning, info (default), debug
  --version, --help

SIGTERM and SIGINT end the agent; tenants run on inside their quotas, and the next agent takes them over.
Exit status: 0 ended by a signal, 2 wrong usage, 1 anything else, with a sentence on stderr.
)";

namespace {

using K = FailureKind;

std::string absolute(const std::string& path, const std::string& from) {
  return path.empty() || path[0] == '/' ? path : from + "/" + path;
}

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
  o.state = absolute(o.state, s.working_directory);
  o.socket = absolute(o.socket, s.working_directory);
  o.cdi_dir = absolute(o.cdi_dir, s.working_directory);
}

}  // namespace

Outcome<Options> parse_options(int argc, char** argv, const Surroundings& surroundings) {
  Options o;
  // The agent starts itself again for two small jobs (tenant/keeper.h, devices/context_charge.h).
  if (argc == 3 && std::string_view(argv[1]) == "--keeper") {
    o.mode = Options::Mode::keeper;
    o.keeper_dir = argv[2];
    return o;
  }
  if (argc == 4 && std::string_view(argv[1]) == "--measure-context") {
    o.mode = Options::Mode::measure;
    o.measure_libcuda = argv[2];
    o.measure_uuid = argv[3];
    return o;
  }
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      o.mode = Options::Mode::help;
      return o;
    }
    if (name == "--version") {
      o.mode = Options::Mode::version;
      return o;
    }
    std::string value;
    bool valued = false;
    if (const size_t equal = name.find('='); equal != std::string::npos) {
      value = name.substr(equal + 1);
      name.resize(equal);
      valued = true;
    }
    const auto take = [&] {
      if (!valued && i + 1 < argc) value = argv[++i], valued = true;
      return valued && !value.empty();
    };
    const struct {
      const char* name;
      std::string* target;
    } texts[] = {{"--sim", &o.sim},
                 {"--state", &o.state},
                 {"--socket", &o.socket},
                 {"--cdi-dir", &o.cdi_dir},
                 {"--log-level", &o.log_level}};
    bool known = false;
    for (const auto& text : texts) {
      if (name != text.name) continue;
      if (!take()) return failure(K::bad_request, "{} needs a value; carved --help explains it", name);
      *text.target = value;
      known = true;
    }
    if (known) continue;
    if (name != "--strategy" && name != "--reserve" && name != "--context-charge" && name != "--audit" &&
        name != "--over-quota")
      return failure(K::bad_request, "there is no option {}; carved --help lists them", argv[i]);
    if (!take()) return failure(K::bad_request, "{} needs a value; carved --help explains it", name);
    if (name == "--strategy") {
      const auto strategy = parse_strategy(value);
      if (!strategy) return failure(K::bad_request, "--strategy {}: it is binpack or spread", value);
      o.strategy = *strategy;
    } else if (name == "--reserve") {
      const auto bytes = parse_bytes(value);
      if (!bytes) return failure(K::bad_request, "--reserve {}: {}", value, bytes.error().sentence);
      o.reserve = *bytes;
    } else if (name == "--audit") {
      const auto act = parse_audit_act(value);
      if (!act) return failure(K::bad_request, "--audit {}: it is report, freeze or kill", value);
      o.audit = *act;
    } else if (name == "--over-quota") {
      const auto act = parse_over_quota_act(value);
      if (!act) return failure(K::bad_request, "--over-quota {}: it is report, refuse or kill", value);
      o.over_quota = *act;
    } else if (value == "slice" || value == "reserve") {
      o.contexts_in_slice = value == "slice";
    } else {
      return failure(K::bad_request, "--context-charge {}: it is slice or reserve", value);
    }
  }
  fill_defaults(o, surroundings);
  return o;
}

}  // namespace carve::node
