// carve-controller's command line: its options, the rules for their values, and the rules between options.
#include "controller/controller_options.h"

#include <algorithm>
#include <charconv>

#include "os/option_rows.h"
#include "os/socket.h"

namespace carve::controller {
namespace {

using os::shown;

Outcome<void> add_node(Options& o, const std::string& word) {
  const size_t equal = word.find('=');
  if (equal == std::string::npos || equal + 1 == word.size())
    return failure(FailureKind::invalid_argument,
                   "--node '{}' must be NAME=SOCKET, such as a=/run/carve/carved.sock", shown(word));
  NodeAddress node{.name = word.substr(0, equal), .socket = word.substr(equal + 1)};
  if (!is_node_name(node.name))
    return failure(FailureKind::invalid_argument,
                   "--node '{}': '{}' is not a valid node name; use 1 to {} characters from a-z, 0-9 and -, "
                   "with a letter or a "
                   "digit at both ends",
                   shown(word), shown(node.name), max_node_name_bytes);
  if (const auto earlier = std::ranges::find(o.nodes, node.name, &NodeAddress::name);
      earlier != o.nodes.end())
    return failure(FailureKind::invalid_argument,
                   "--node '{}': node {} already has the socket {}; use a different name for each node",
                   shown(word), node.name, shown(earlier->socket));
  if (o.nodes.size() == max_nodes)
    return failure(FailureKind::invalid_argument,
                   "--node '{}': a controller has at most {} nodes; start another controller for more",
                   shown(word), max_nodes);
  o.nodes.push_back(std::move(node));
  return {};
}

Outcome<void> set_usage_account(Options& o, const std::string& word) {
  const size_t slash = word.find('/');
  const auto is_plain = [](std::string_view name) {
    return !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
  };
  if (slash == std::string::npos || !is_plain(word.substr(0, slash)) || !is_plain(word.substr(slash + 1)))
    return failure(FailureKind::invalid_argument,
                   "--usage-account '{}' must be NAMESPACE/NAME, such as carve-system/carve-usage-reader",
                   shown(word));
  o.usage_account = {.name_space = word.substr(0, slash), .name = word.substr(slash + 1)};
  return {};
}

Outcome<void> set_listen(Options& o, const std::string& word) {
  o.listen = os::parse_tcp_address(word);
  o.listen_requested = o.listen.has_value();
  if (!o.listen && word != "none")
    return failure(FailureKind::invalid_argument,
                   "--listen '{}' must be an address and a port, such as 127.0.0.1:8470, or none",
                   shown(word));
  return {};
}

Outcome<void> add_host(Options& o, const std::string& word) {
  constexpr size_t max_hosts = 16, max_host_bytes = 253;
  const bool is_plain =
      !word.empty() && word.size() <= max_host_bytes && std::ranges::all_of(word, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.';
      });
  if (!is_plain)
    return failure(
        FailureKind::invalid_argument,
        "--host '{}' must be a host name of at most {} letters, digits, '-' and '.', without a port",
        shown(word), max_host_bytes);
  if (o.hosts.size() == max_hosts)
    return failure(FailureKind::invalid_argument, "--host '{}': a controller has at most {} names",
                   shown(word), max_hosts);
  o.hosts.push_back(word);
  return {};
}

Outcome<void> set_account_quota(Options& o, const std::string& word) {
  const std::string digits = word.ends_with('%') ? word.substr(0, word.size() - 1) : word;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, o.account_quota_percent);
  if (error == std::errc() && end == last && o.account_quota_percent >= 1 && o.account_quota_percent <= 100)
    return {};
  return failure(FailureKind::invalid_argument, "--account-quota '{}' must be from 1% to 100%", shown(word));
}

// Parses a time, "600s" or "600".
Outcome<void> set_time(const char* option, int64_t& seconds, const std::string& word) {
  const std::string digits = word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, seconds);
  if (error == std::errc() && end == last && seconds >= 0 && seconds <= max_expected_start_s) return {};
  return failure(FailureKind::invalid_argument, "{} '{}' is not a time from 0s to {}s", option, shown(word),
                 max_expected_start_s);
}

Outcome<void> set_expected_start(Options& o, const std::string& word) {
  return set_time("--expected-start", o.expected_start_s, word);
}

Outcome<void> set_usage_interval(Options& o, const std::string& word) {
  if (const auto good = set_time("--usage-interval", o.usage_interval_s, word); !good) return good;
  if (o.usage_interval_s >= 1 && o.usage_interval_s <= max_usage_interval_s) return {};
  return failure(FailureKind::invalid_argument, "--usage-interval '{}' must be from 1s to {}s", shown(word),
                 max_usage_interval_s);
}

Outcome<void> set_orphan_grace(Options& o, const std::string& word) {
  return set_time("--orphan-grace", o.orphan_grace_s, word);
}

const os::CommandLine& line() {
  static const os::CommandLine line =
      os::command_line("carve-controller",
                       "carve-controller: the Carve controller. It manages nodes, each with an agent "
                       "(carved), and runs their services and jobs.",
                       "SIGTERM and SIGINT end the controller; agents and slices keep running.\n"
                       "Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; the "
                       "reason is on stderr.\n"
                       "  carve-controller --node a=/run/carve/carved.sock --listen 127.0.0.1:8470",
                       option_rows);
  return line;
}

// Names this machine's node after the host: the host name up to the first dot, in lower case.
Outcome<NodeAddress> this_node(const Surroundings& s) {
  std::string name = s.host_name.substr(0, s.host_name.find('.'));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (!is_node_name(name))
    return failure(
        FailureKind::invalid_argument,
        "--node: the host name '{}' is not a valid node name; add this machine's agent with --node NAME={}",
        shown(s.host_name), shown(s.agent_socket));
  return NodeAddress{.name = std::move(name), .socket = s.agent_socket};
}

Outcome<void> fill_defaults(Options& o, const Surroundings& s) {
  if (o.nodes.empty() && o.kubernetes_nodes.empty() && !o.kubernetes) {
    auto node = this_node(s);
    if (!node) return tl::unexpected(node.error());
    o.nodes.push_back(std::move(*node));
  }
  if (o.state.empty() && s.uid == 0) o.state = "/var/lib/carve-controller";
  if (o.state.empty())
    o.state = (s.xdg_state_home.empty() ? s.home + "/.local/state" : s.xdg_state_home) + "/carve-controller";
  if (o.socket.empty()) o.socket = s.controller_socket;
  o.state = os::absolute(o.state, s.working_directory);
  o.socket = os::absolute(o.socket, s.working_directory);
  for (std::string* file : {&o.tls_certificate, &o.tls_key, &o.console, &o.kubernetes_nodes, &o.kubeconfig})
    if (!file->empty() && *file != "none" && *file != pod_account)
      *file = os::absolute(*file, s.working_directory);
  for (NodeAddress& node : o.nodes) node.socket = os::absolute(node.socket, s.working_directory);
  return {};
}

Outcome<void> check_length(const std::string& option, const std::string& path) {
  if (path.size() <= os::max_socket_path_bytes) return {};
  return failure(FailureKind::invalid_argument,
                 "{} {}: the path has {} bytes, and a unix socket's path has at most {}; use a shorter path",
                 option, shown(path), path.size(), os::max_socket_path_bytes);
}

// Checks the rules between options, and those for paths, which are absolute by now.
Outcome<void> consistent(const Options& o) {
  if (o.kubernetes && !o.nodes.empty())
    return failure(FailureKind::invalid_argument,
                   "--node cannot be used with --kubernetes; the cluster's own nodes run the pods");
  if (!o.kubeconfig.empty() && !o.kubernetes)
    return failure(FailureKind::invalid_argument, "--kubeconfig requires --kubernetes; add it");
  if (o.tls_certificate.empty() != o.tls_key.empty())
    return failure(FailureKind::invalid_argument, "{} requires {}; TLS needs a certificate and its key",
                   o.tls_key.empty() ? "--tls-cert" : "--tls-key",
                   o.tls_key.empty() ? "--tls-key" : "--tls-cert");
  if (!o.tls_key.empty() && !o.listen)
    return failure(FailureKind::invalid_argument,
                   "--tls-cert cannot be used with --listen none; set an address, or leave out --tls-cert "
                   "and --tls-key");
  if (o.listen && !os::is_loopback(*o.listen) && o.tls_key.empty())
    return failure(FailureKind::invalid_argument,
                   "--listen {}: an address other than loopback needs --tls-cert FILE and --tls-key FILE; "
                   "add them, or use 127.0.0.1:{}",
                   os::text(*o.listen), o.listen->port);
  if (const auto good = check_length("--socket", o.socket); !good) return good;
  for (auto node = o.nodes.begin(); node != o.nodes.end(); ++node) {
    if (const auto good = check_length("--node " + node->name + ":", node->socket); !good) return good;
    const auto same = std::ranges::find(o.nodes.begin(), node, node->socket, &NodeAddress::socket);
    if (same != node)
      return failure(FailureKind::invalid_argument,
                     "--node {}={}: node {} already has this socket; an agent serves one node", node->name,
                     shown(node->socket), same->name);
    if (node->socket == o.socket)
      return failure(FailureKind::invalid_argument,
                     "--socket {}: this is the socket of the agent of node {}; choose another path",
                     shown(o.socket), node->name);
  }
  return {};
}

}  // namespace

const std::vector<os::OptionRow<Options>> option_rows = os::with_usual_rows<Options>({
    {.name = "--node",
     .value = "NAME=SOCKET",
     .help = "node and the socket of its agent; repeatable, at most 64 nodes\n"
             "[this machine's agent, named after the host]",
     .store = add_node,
     .repeatable = true},
    {.name = "--kubernetes-nodes",
     .value = "FILE",
     .help = "kubeconfig file of a cluster whose nodes' usage records are copied for invoices, or pod\n"
             "for this pod's service account. Without --node, the controller then has no other node",
     .store = os::keep<&Options::kubernetes_nodes>},
    {.name = "--usage-interval",
     .value = "TIME",
     .help = "how often each of these nodes is read [60s]",
     .store = set_usage_interval},
    {.name = "--usage-account",
     .value = "NAMESPACE/NAME",
     .help = "service account with which the nodes' usage records are read\n"
             "[carve-system/carve-usage-reader]",
     .store = set_usage_account},
    {.name = "--state",
     .value = "DIR",
     .help = "directory of controller.db [root: /var/lib/carve-controller; else\n"
             "$XDG_STATE_HOME/carve-controller or ~/.local/state/carve-controller]",
     .store = os::keep<&Options::state>},
    {.name = "--socket",
     .value = "PATH",
     .help = "unix socket of the API [$CARVE_CONTROLLER, else controller.sock next to the socket of\n"
             "this machine's agent]",
     .store = os::keep<&Options::socket>},
    {.name = "--listen",
     .value = "HOST:PORT",
     .help = "TCP address that also serves the API, or none; callers there need a token. An address\n"
             "other than loopback needs --tls-cert and --tls-key [127.0.0.1:8470, if it is free]",
     .store = set_listen},
    {.name = "--tls-cert",
     .value = "FILE",
     .help = "PEM file with the certificate of --listen and its chain [no TLS]",
     .store = os::keep<&Options::tls_certificate>},
    {.name = "--tls-key",
     .value = "FILE",
     .help = "PEM file with the certificate's key, without a passphrase",
     .store = os::keep<&Options::tls_key>},
    {.name = "--host",
     .value = "NAME",
     .help = "host name that callers use to reach --listen; repeatable, at most 16 names\n"
             "[localhost, 127.0.0.1, ::1 and the address of --listen]",
     .store = add_host,
     .repeatable = true},
    {.name = "--console",
     .value = "DIR",
     .help = "folder of the built web console that --listen serves, or none [the installed console]",
     .store = os::keep<&Options::console>},
    {.name = "--expected-start",
     .value = "TIME",
     .help = "expected duration of a node's start; a starting node shows the remaining time [600s]",
     .store = set_expected_start},
    {.name = "--orphan-grace",
     .value = "TIME",
     .help = "time until a program without a database record and without an owner is stopped [60s]",
     .store = set_orphan_grace},
    {.name = "--account-quota",
     .value = "PERCENT",
     .help = "maximum part of the limit of each kind of object that one account may use [25%]",
     .store = set_account_quota},
    {.name = "--allow-unknown-gpu-requests",
     .help = "accept manifests with unsupported GPU requests; their programs see no device",
     .store = os::raise<&Options::allows_unknown_gpu_requests>},
    {.name = "--kubernetes",
     .help = "keep the objects in a Kubernetes cluster as custom resources, and run services and\n"
             "applications there as pods; the controller then has no nodes of its own",
     .store = os::raise<&Options::kubernetes>},
    {.name = "--kubeconfig",
     .value = "FILE",
     .help = "with --kubernetes: kubeconfig file with a token or client certificate\n"
             "[the pod's service account]",
     .store = os::keep<&Options::kubeconfig>},
    {.name = "--custom-resources",
     .help = "print the definitions of Kubernetes' custom resources for all kinds of objects",
     .store = os::enter<Options::Mode::custom_resources>},
});

bool is_node_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= max_node_name_bytes && plain(name.front()) && plain(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-'; });
}

std::string help_text() { return line().help(); }

std::string completion_script() { return line().completion(); }

Outcome<Options> parse_options(int argc, char** argv, const Surroundings& surroundings) {
  Options o;
  const auto parsed = line().parse(
      argc, argv, [&](size_t row, const std::string& value) { return option_rows[row].store(o, value); },
      [&] { return o.mode != Options::Mode::serve; });
  if (!parsed) return tl::unexpected(parsed.error());
  if (o.mode != Options::Mode::serve) return o;
  if (const auto filled = fill_defaults(o, surroundings); !filled) return tl::unexpected(filled.error());
  if (const auto good = consistent(o); !good) return tl::unexpected(good.error());
  return o;
}

}  // namespace carve::controller
