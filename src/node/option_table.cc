// The rows of carved's options, and the rules for their values.
#include "node/option_table.h"

#include <algorithm>
#include <charconv>

#include "core/request.h"
#include "node/settings/node_labels.h"
#include "os/option_rows.h"
#include "os/user.h"

namespace carve::node {
namespace {

using os::known_word;
using os::shown;
using Words = std::vector<std::string_view>;

constexpr uint64_t max_start_delay_s = 3600;

const Words policies = {text(Policy::fixed_share), text(Policy::guaranteed_burst_share),
                        text(Policy::native_burst_share)};

Outcome<void> set_policy(Options& o, const std::string& option, const std::string& word) {
  if (const auto known = known_word(option, word, "a policy", policies); !known) return known;
  const auto policy = parse<Policy>(word);
  if (o.policy && o.policy != policy)
    return failure(FailureKind::invalid_argument,
                   "{} {}: another option sets the policy {}; give only one of them", option, word,
                   text(*o.policy));
  o.policy = policy;
  return {};
}

Outcome<void> set_label(Options& o, const std::string& word) {
  const auto change = parse_label_change(word);
  if (!change) return failure(FailureKind::invalid_argument, "--label {}", change.error().message);
  const auto& [key, value] = *change;
  if (const auto known = o.labels.find(key); known != o.labels.end() && known->second != value)
    return failure(FailureKind::invalid_argument, "--label {}: {} already has the value {}", word, key,
                   known->second.value_or("-"));
  if (o.labels.size() == max_labels)
    return failure(FailureKind::invalid_argument, "--label {}: a node has at most {} labels", word,
                   max_labels);
  if (meaning_of(key) == LabelMeaning::policy && value)
    if (const auto good = set_policy(o, "--label " + key, *value); !good) return good;
  o.labels[key] = value;
  return {};
}

// Parses "127.0.0.1:9400", "[::1]:0" or, with --metrics-listen-any, also "0.0.0.0:9400".
Outcome<void> set_metrics(Options& o, const std::string& word) {
  o.metrics = os::parse_tcp_address(word);
  if (!o.metrics)
    return failure(FailureKind::invalid_argument,
                   "--metrics-listen '{}' must be an address and a port, such as 127.0.0.1:9400",
                   shown(word));
  return {};
}

Outcome<void> set_reserve(Options& o, const std::string& word) {
  const auto bytes = parse_bytes(word);
  if (!bytes)
    return failure(FailureKind::invalid_argument, "--reserve '{}' {}", shown(word), bytes.error().message);
  o.reserve = *bytes;
  return {};
}

Outcome<void> set_spill_limit(Options& o, const std::string& word) {
  const auto bytes = parse_bytes(word);
  if (!bytes)
    return failure(FailureKind::invalid_argument, "--spill-limit '{}' {}", shown(word),
                   bytes.error().message);
  o.spill_limit = *bytes;
  return {};
}

Outcome<void> set_start_delay(Options& o, const std::string& word) {
  uint64_t seconds = 0;
  const std::string digits = word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  if (error != std::errc() || end != digits.data() + digits.size() || seconds > max_start_delay_s)
    return failure(FailureKind::invalid_argument, "--start-delay '{}' is not a duration from 0s to {}s",
                   shown(word), max_start_delay_s);
  o.start_delay_ns = seconds * 1'000'000'000;
  return {};
}

// Stores a value if it is one of the row's words.
template <auto Options::*field, auto parsed>
Outcome<void> choose(Options& o, const std::string& value) {
  o.*field = *parsed(value);
  return {};
}

}  // namespace

const std::vector<OptionRow> option_rows = os::with_usual_rows<Options>({
    {.name = "--sim",
     .value = "SPEC|FILE",
     .help = "simulate devices instead of using real ones: a10x2, demo15, a10x2,t4x1 or a YAML file",
     .store = os::keep<&Options::sim>},
    {.name = "--state",
     .value = "DIR",
     .help = "directory of the ledger\n"
             "[root: /var/lib/carve; else $XDG_STATE_HOME/carve or ~/.local/state/carve]",
     .store = os::keep<&Options::state>},
    {.name = "--socket",
     .value = "PATH",
     .help = "unix socket of the API; PATH.attach is the attach socket, PATH.run/ the runtime\n"
             "directory [root: /run/carve/carved.sock; else $XDG_RUNTIME_DIR/carve/carved.sock,\n"
             "or /tmp/carve-UID/carved.sock]",
     .store = os::keep<&Options::socket>},
    {.name = "--strategy",
     .value = "NAME",
     .help = "binpack: fill one device before the next; spread: use the emptiest device first [binpack]",
     .store = choose<&Options::strategy, parse_node_strategy>,
     .words = {text(Strategy::binpack), text(Strategy::spread)},
     .noun = "a strategy"},
    {.name = "--bookkeeper",
     .value = "NAME",
     .help = "agent: users request slices; kubernetes: the agent grants only what Kubernetes placed,\n"
             "to root, for pods and claims [agent]",
     .store = choose<&Options::bookkeeper, parse<Bookkeeper>>,
     .words = {text(Bookkeeper::agent), text(Bookkeeper::kubernetes)},
     .noun = "a bookkeeper"},
    {.name = "--driver-root",
     .value = "DIR",
     .help = "directory below which the driver's libraries are; for an agent in a container, the mount\n"
             "point of the host's root [/]",
     .store = os::keep<&Options::driver_root>},
    {.name = "--libraries",
     .value = "DIR",
     .help = "directory to which an agent in a container copies Carve's libraries; it must have the same\n"
             "path on the host, because containers mount it from there [where they are installed]",
     .store = os::keep<&Options::libraries>},
    {.name = "--restart-after-crash",
     .help = "restart the agent when a signal has terminated it, without a restart of its container",
     .store = os::raise<&Options::restart_after_crash>},
    {.name = "--topology",
     .value = "FILE",
     .help = "links between the devices, as `nvidia-smi topo -m` prints them [the driver's report];\n"
             "a slice of several devices gets the best connected ones",
     .store = os::keep<&Options::topology>},
    {.name = "--reserve",
     .value = "SIZE",
     .help = "bytes of each device that are kept back from slices [what the driver reports as reserved]",
     .store = set_reserve},
    {.name = "--spill-limit",
     .value = "SIZE",
     .help = "maximum host memory for the spill of all slices together [half of the host's memory]",
     .store = set_spill_limit},
    {.name = "--context-charge",
     .value = "TO",
     .help = "slice: CUDA contexts count against the slice's quota; reserve: they count against\n"
             "the device's reserved bytes [slice]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.contexts_in_slice = value == "slice";
       return {};
     },
     .words = {"slice", "reserve"},
     .noun = "a place to charge"},
    {.name = "--audit",
     .value = "ACTION",
     .help = "action against a process of a slice that holds device memory without being attached:\n"
             "report it; freeze its slice (carve thaw NAME resumes it); kill the process [report]",
     .store = choose<&Options::audit, parse<AuditAction>>,
     .words = {text(AuditAction::report), text(AuditAction::freeze), text(AuditAction::kill)},
     .noun = "an action"},
    {.name = "--over-quota",
     .value = "ACTION",
     .help = "action when memory that no call requested takes a slice beyond its quota: report it;\n"
             "refuse further allocations; kill the slice (also after a refused call) [refuse]",
     .store = choose<&Options::over_quota, parse<OverQuotaAction>>,
     .words = {text(OverQuotaAction::report), text(OverQuotaAction::refuse), text(OverQuotaAction::kill)},
     .noun = "an action"},
    {.name = "--guard",
     .value = "LEVEL",
     .help = "how memory limits are enforced: kernel: by the kernel guard, or the agent doesn't start;\n"
             "library: by the guest library; auto: by the kernel guard if it is in force [library]",
     .store = choose<&Options::guard, parse<GuardChoice>>,
     .words = {text(GuardChoice::automatic), text(GuardChoice::kernel), text(GuardChoice::library)},
     .noun = "a level"},
    {.name = "--kernel-log",
     .value = "FILE",
     .help = "log in which the kernel driver names the process of an error (Xid)\n"
             "[/dev/kmsg; with --sim the simulated devices' own log]",
     .store = os::keep<&Options::kernel_log>},
    {.name = "--label",
     .value = "KEY=VALUE",
     .help = "label to set on this node, kept across restarts; repeatable; KEY- removes a label;\n"
             "vke.volcengine.com/mgpu-compute-policy sets the policy, as --policy does",
     .store = set_label,
     .repeatable = true},
    {.name = "--policy",
     .value = "NAME",
     .help = "compute policy of this node's devices: fixed-share, guaranteed-burst-share,\n"
             "native-burst-share. A device changes its policy when its last slice has ended\n"
             "[the policy last set with carve node set, otherwise fixed-share]",
     .store = [](Options& o, const std::string& value) { return set_policy(o, "--policy", value); },
     .words = policies,
     .noun = "a policy"},
    {.name = "--policy-per-slice",
     .help = "allow slices of one device to follow different policies",
     .store = os::raise<&Options::policy_per_slice>},
    {.name = "--best-effort",
     .value = "ACTION",
     .help = "action on a request without a compute share for a device that enforces shares: allow it,\n"
             "so that the slice runs when no entitled slice wants the device; refuse it [allow]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.admit_best_effort = value == "allow";
       return {};
     },
     .words = {"allow", "refuse"},
     .noun = "an action"},
    {.name = "--overcommit-compute",
     .help = "allow more than 100 % of a device's compute to be granted; no share is then guaranteed",
     .store = os::raise<&Options::overcommit_compute>},
    {.name = "--memory-unit",
     .value = "UNIT",
     .help = "unit of memory requests that are plain numbers (carve run --gpu-mem 16): 1GiB, 128MiB\n"
             "[the unit last set, otherwise 1GiB]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.memory_unit = *parse<MemoryUnit>(value);
       return {};
     },
     .words = {text(MemoryUnit::gib), text(MemoryUnit::mib_128)},
     .noun = "a memory unit"},
    {.name = "--start-delay",
     .value = "TIME",
     .help = "time that simulated devices take to start, such as 20s; no slice is granted before [0s]",
     .store = set_start_delay},
    {.name = "--controller-user",
     .value = "USER",
     .help = "user who may create, see and stop slices of all users [carve-controller, if it exists]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.controller_uid = os::user_id(value);
       if (!o.controller_uid)
         return failure(FailureKind::invalid_argument, "--controller-user '{}': there is no such user",
                        shown(value));
       return {};
     }},
    {.name = "--operators-group",
     .value = "GROUP",
     .help = "group whose members may see and change all users' slices, and the node; none for no group\n"
             "[carve-operators]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.operators_group = value == "none" ? "" : value;
       return {};
     }},
    {.name = "--metrics-listen",
     .value = "HOST:PORT",
     .help = "loopback address at which GET /metrics is also served (127.0.0.1:9400, [::1]:9400)",
     .store = set_metrics},
    {.name = "--metrics-listen-any",
     .help = "allow any address for --metrics-listen; every client that reaches it sees all slices'\n"
             "names and usage",
     .store = os::raise<&Options::metrics_any>},
    {.name = "--dcgm-names",
     .value = "ACTION",
     .help = "whether metrics include DCGM's series of the devices (DCGM_FI_DEV_*): yes; no, if NVIDIA's\n"
             "dcgm-exporter runs on this node [yes]",
     .store = [](Options& o, const std::string& value) -> Outcome<void> {
       o.dcgm_names = value == "yes";
       return {};
     },
     .words = {"yes", "no"},
     .noun = "an answer"},
    {.name = "--cdi-dir",
     .value = "DIR",
     .help = "directory in which slices are announced to container engines\n"
             "[root: /var/run/cdi; else cdi next to the socket]",
     .store = os::keep<&Options::cdi_dir>},
});

}  // namespace carve::node
