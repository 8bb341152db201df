#include "node/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/request.h"
#include "node/agent/policies.h"

namespace carve::node {

const char* const help_text =
    R"(carved: the Carve node agent. It divides this node's GPUs into slices and enforces their limits.

  carved [OPTIONS]

  --sim SPEC|FILE        simulate devices instead of using real ones: a10x2, demo15, a10x2,t4x1, or a YAML file
  --state DIR            directory of the ledger
                         [root: /var/lib/carve; else $XDG_STATE_HOME/carve or ~/.local/state/carve]
  --socket PATH          unix socket of the API; PATH.attach is the attach socket, PATH.run/ the runtime directory
                         [root: /run/carve/carved.sock; else $XDG_RUNTIME_DIR/carve/carved.sock, or
                         /tmp/carve-UID/carved.sock]
  --strategy NAME        binpack: fill one device before the next; spread: the emptiest device first [binpack]
  --topology FILE        links between the devices, as `nvidia-smi topo -m` prints them [the driver's report];
                         a slice of several devices gets the best connected ones
  --reserve SIZE         bytes of each device that no slice gets [what the driver reports as reserved]
  --context-charge TO    slice: contexts count against the slice's quota; reserve: against the device's reserved
                         bytes [slice]
  --audit ACTION         action against a process of a slice that holds device memory without being attached:
                         report it; freeze its slice (carve thaw NAME continues it); kill the process [report]
  --over-quota ACTION    action when memory that no call requested takes a slice beyond its quota: report it;
                         refuse it further allocations; kill the slice [refuse]
  --policy NAME          compute policy of this node's devices: fixed-share, guaranteed-burst-share,
                         native-burst-share [the last carve node set --policy, else fixed-share]. A device changes
                         its policy when its last slice has ended
  --policy-per-slice     allow slices of one device to follow different policies
  --best-effort ACTION   action on a request without a compute share for a device that enforces shares: refuse
                         it; allow it, to run when no entitled slice wants the device [refuse]
  --overcommit-compute   allow more than 100 % of a device's compute to be granted; no share is then guaranteed
  --label KEY=VALUE      label of this node, repeatable; vke.volcengine.com/mgpu-compute-policy sets the policy,
                         as --policy does
  --metrics-listen HOST:PORT  loopback address that also answers GET /metrics (127.0.0.1:9400, [::1]:9400)
  --metrics-listen-any   allow any address there: each client that reaches it sees every slice's name and usage
  --cdi-dir DIR          directory where slices for containers are announced [/var/run/cdi]
  --log-level LEVEL      error, warning, info, debug [info]
  --version, --help

SIGTERM and SIGINT end the agent; slices run on inside their quotas, and the next agent adopts them.
Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; stderr has the reason.
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
  o.topology = absolute(o.topology, s.working_directory);
}

Outcome<void> say_policy(Options& o, const std::string& option, const std::string& word) {
  const auto policy = parse<Policy>(word);
  if (!policy)
    return failure(K::invalid_argument,
                   "{} '{}' is not a policy; use fixed-share, guaranteed-burst-share or native-burst-share",
                   option, word);
  if (o.policy && *o.policy != *policy)
    return failure(K::invalid_argument, "{} {}: another option already sets {}; give the policy once", option,
                   word, text(*o.policy));
  o.policy = *policy;
  return {};
}

Outcome<void> say_label(Options& o, const std::string& word) {
  const size_t equal = word.find('=');
  if (equal == std::string::npos || equal == 0 || word.size() > 2 * max_label_bytes ||
      std::ranges::any_of(word, [](char c) { return c < ' ' || c > '~'; }))
    return failure(K::invalid_argument, "--label '{}' is not KEY=VALUE in printable ASCII",
                   word.substr(0, 80));
  const std::string key = word.substr(0, equal), value = word.substr(equal + 1);
  if (const auto known = o.labels.find(key); known != o.labels.end() && known->second != value)
    return failure(K::invalid_argument, "--label {}: {} already has the value {}", word, key, known->second);
  if (o.labels.size() == max_labels)
    return failure(K::invalid_argument, "--label {}: a node has at most {} labels", word, max_labels);
  if (key == policy_label)
    if (const auto good = say_policy(o, "--label " + key, value); !good) return good;
  o.labels[key] = value;
  return {};
}

// "127.0.0.1:9400", "[::1]:0", with --metrics-listen-any also "0.0.0.0:9400".
Outcome<void> say_metrics(Options& o, const std::string& word) {
  const size_t colon = word.rfind(':');
  std::string host = word.substr(0, std::min(colon, word.size()));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  unsigned port = 0;
  const char* const from = word.data() + std::min(colon + 1, word.size());
  const auto [end, error] = std::from_chars(from, word.data() + word.size(), port);
  unsigned char address[sizeof(in6_addr)];
  if (colon == std::string::npos || error != std::errc{} || end != word.data() + word.size() ||
      port > 65535 ||
      (inet_pton(AF_INET, host.c_str(), address) != 1 && inet_pton(AF_INET6, host.c_str(), address) != 1))
    return failure(K::invalid_argument,
                   "--metrics-listen '{}' is not an address and a port, such as 127.0.0.1:9400", word);
  o.metrics_host = host;
  o.metrics_port = static_cast<uint16_t>(port);
  return {};
}

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

struct Row {
  std::string_view name;
  bool takes_value;
  Outcome<void> (*say)(Options&, const std::string& value);
};

// Stores an option's value unchanged.
template <std::string Options::*field>
Outcome<void> keep(Options& o, const std::string& value) {
  o.*field = value;
  return {};
}
template <bool Options::*field>
Outcome<void> raise(Options& o, const std::string&) {
  o.*field = true;
  return {};
}

constexpr Row rows[] = {
    {"--sim", true, keep<&Options::sim>},
    {"--state", true, keep<&Options::state>},
    {"--socket", true, keep<&Options::socket>},
    {"--topology", true, keep<&Options::topology>},
    {"--cdi-dir", true, keep<&Options::cdi_dir>},
    {"--log-level", true, keep<&Options::log_level>},
    {"--policy-per-slice", false, raise<&Options::policy_per_slice>},
    {"--overcommit-compute", false, raise<&Options::overcommit_compute>},
    {"--metrics-listen-any", false, raise<&Options::metrics_any>},
    {"--metrics-listen", true, say_metrics},
    {"--label", true, say_label},
    {"--policy", true, [](Options& o, const std::string& value) { return say_policy(o, "--policy", value); }},
    {"--best-effort", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       if (value != "allow" && value != "refuse")
         return failure(K::invalid_argument, "--best-effort '{}' is not an action; use refuse or allow",
                        value);
       o.admit_best_effort = value == "allow";
       return {};
     }},
    {"--strategy", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       const auto strategy = parse_node_strategy(value);
       if (!strategy)
         return failure(K::invalid_argument, "--strategy '{}' is not a strategy; use {}", value,
                        node_strategy_names());
       o.strategy = *strategy;
       return {};
     }},
    {"--reserve", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       const auto bytes = parse_bytes(value);
       if (!bytes) return failure(K::invalid_argument, "--reserve '{}' {}", value, bytes.error().sentence);
       o.reserve = *bytes;
       return {};
     }},
    {"--audit", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       const auto act = parse_audit_act(value);
       if (!act)
         return failure(K::invalid_argument, "--audit '{}' is not an action; use report, freeze or kill",
                        value);
       o.audit = *act;
       return {};
     }},
    {"--over-quota", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       const auto act = parse_over_quota_act(value);
       if (!act)
         return failure(K::invalid_argument, "--over-quota '{}' is not an action; use report, refuse or kill",
                        value);
       o.over_quota = *act;
       return {};
     }},
    {"--context-charge", true,
     [](Options& o, const std::string& value) -> Outcome<void> {
       if (value != "slice" && value != "reserve")
         return failure(K::invalid_argument,
                        "--context-charge '{}' is not a place to charge; use slice or reserve", value);
       o.contexts_in_slice = value == "slice";
       return {};
     }},
};

}  // namespace

Outcome<Options> parse_options(int argc, char** argv, const Surroundings& surroundings) {
  Options o;
  // The agent starts its own executable again for two small tasks (slice/fd_store.h,
  // devices/context_charge.h).
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
    const auto row = std::ranges::find(rows, name, &Row::name);
    if (row == std::end(rows))
      return failure(K::invalid_argument, "there is no option {}; carved --help lists the options", argv[i]);
    if (valued && !row->takes_value) return failure(K::invalid_argument, "{} takes no value", name);
    if (!valued && row->takes_value && i + 1 < argc) value = argv[++i];
    if (row->takes_value && value.empty())
      return failure(K::invalid_argument, "{} needs a value; carved --help explains it", name);
    if (const auto good = row->say(o, value); !good) return tl::unexpected(good.error());
  }
  if (o.metrics_any && o.metrics_host.empty())
    return failure(K::invalid_argument, "--metrics-listen-any needs --metrics-listen HOST:PORT");
  if (!o.metrics_host.empty() && !o.metrics_any && !is_loopback(o.metrics_host))
    return failure(K::invalid_argument,
                   "--metrics-listen {}: metrics name every slice, so only a loopback address is opened; "
                   "add --metrics-listen-any to open this one",
                   o.metrics_host);
  fill_defaults(o, surroundings);
  return o;
}

}  // namespace carve::node
