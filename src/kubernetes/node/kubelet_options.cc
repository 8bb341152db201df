#include "kubernetes/node/kubelet_options.h"

#include <algorithm>

#include "os/option_rows.h"
#include "os/socket.h"

namespace carve::kubernetes::node {
namespace {

constexpr size_t max_node_name_bytes = 253;  // A DNS subdomain (Kubernetes, "Object Names and IDs").

Outcome<void> set_metrics(Options& o, const std::string& value) {
  o.metrics.reset();
  if (value == "off") return {};
  o.metrics = os::parse_tcp_address(value);
  if (o.metrics) return {};
  return failure(FailureKind::invalid_argument,
                 "--metrics '{}' is not an address and a port, such as 0.0.0.0:9472, or off",
                 os::shown(value));
}

const std::vector<os::OptionRow<Options>> option_rows = os::with_usual_rows<Options>({
    {.name = "--node-name",
     .value = "NAME",
     .help = "this node's name in the cluster [NODE_NAME]",
     .store = os::keep<&Options::node>},
    {.name = "--agent-socket",
     .value = "PATH",
     .help = "the agent's socket [CARVE_SOCKET, else that of this machine]",
     .store = os::keep<&Options::agent_socket>},
    {.name = "--kubelet-dir",
     .value = "DIR",
     .help = "kubelet's folder [/var/lib/kubelet]",
     .store = os::keep<&Options::kubelet_dir>},
    {.name = "--plugin-dir",
     .value = "DIR",
     .help = "folder of the device plugins' sockets [device-plugins in kubelet's folder]",
     .store = os::keep<&Options::plugin_dir>},
    {.name = "--pod-resources",
     .value = "PATH",
     .help = "kubelet's socket for pod resources [pod-resources/kubelet.sock in kubelet's folder]",
     .store = os::keep<&Options::pod_resources>},
    {.name = "--runtime",
     .value = "PATH",
     .help = "the container runtime's socket (CRI)\n[/run/containerd/containerd.sock]",
     .store = os::keep<&Options::runtime>},
    {.name = "--taint-execute",
     .help = "with DRA: taint unhealthy devices with NoExecute instead of NoSchedule,\nso that pods that use "
             "them are deleted",
     .store = os::raise<&Options::ends_pods>},
    {.name = "--metrics",
     .value = "HOST:PORT",
     .help = "address of /metrics, with TLS, or off [0.0.0.0:9472]",
     .store = set_metrics},
    {.name = "--tls-cert",
     .value = "FILE",
     .help = "PEM file with the certificate of --metrics and its chain [created at each start]",
     .store = os::keep<&Options::tls_certificate>},
    {.name = "--tls-key",
     .value = "FILE",
     .help = "PEM file with the certificate's key, without a passphrase",
     .store = os::keep<&Options::tls_key>},
    {.name = "--kubeconfig",
     .value = "FILE",
     .help = "kubeconfig file with a token or client certificate [the pod's service account]",
     .store = os::keep<&Options::api, &kubernetes::ConnectionOptions::kubeconfig>},
    {.name = "--apiserver",
     .value = "URL",
     .help = "API server; requires --ca and --token-file",
     .store = os::keep<&Options::api, &kubernetes::ConnectionOptions::apiserver>},
    {.name = "--ca",
     .value = "FILE",
     .help = "PEM file with the CA of --apiserver",
     .store = os::keep<&Options::api, &kubernetes::ConnectionOptions::ca_file>},
    {.name = "--token-file",
     .value = "FILE",
     .help = "file with the token for --apiserver, read again each minute",
     .store = os::keep<&Options::api, &kubernetes::ConnectionOptions::token_file>},
});

const os::CommandLine& line() {
  static const os::CommandLine line = os::command_line(
      "carve-kubelet",
      "carve-kubelet: the node's part of Carve on Kubernetes, next to the agent (carved --bookkeeper "
      "kubernetes). It is kubelet's device plugin for carve.dev/slot, or its DRA driver carve.dev, requests "
      "a "
      "slice from the agent for each container or claim, and describes the node's devices in the cluster.",
      "SIGTERM and SIGINT end it; slices and containers keep running, but until carve-kubelet\n"
      "runs again, no container with a slice starts.\n"
      "Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; the reason is on "
      "stderr.\n"
      "  carve-kubelet --node-name n1 --kubeconfig /etc/kubernetes/carve.conf",
      option_rows);
  return line;
}

bool is_node_name(const std::string& name) {
  return !name.empty() && name.size() <= max_node_name_bytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

}  // namespace

Outcome<Options> parse_options(int argc, char** argv, const std::string& node_name) {
  Options out;
  const auto parsed = line().parse(
      argc, argv,
      [&](size_t index, const std::string& value) { return option_rows[index].store(out, value); },
      [&] { return out.mode != Options::Mode::serve; });
  if (!parsed) return tl::unexpected(parsed.error());
  if (out.mode != Options::Mode::serve) return out;
  if (out.node.empty()) out.node = node_name;
  if (out.plugin_dir.empty()) out.plugin_dir = out.kubelet_dir + "/device-plugins";
  if (out.pod_resources.empty()) out.pod_resources = out.kubelet_dir + "/pod-resources/kubelet.sock";
  if (!is_node_name(out.node))
    return failure(FailureKind::invalid_argument,
                   "--node-name '{}' is not a valid node name (1 to {} characters from a-z, 0-9, - and .); "
                   "use the name that "
                   "`kubectl get nodes` prints, or set NODE_NAME",
                   os::shown(out.node), max_node_name_bytes);
  if (out.tls_certificate.empty() != out.tls_key.empty())
    return failure(FailureKind::invalid_argument, "{} requires {}; TLS needs a certificate and its key",
                   out.tls_key.empty() ? "--tls-cert" : "--tls-key",
                   out.tls_key.empty() ? "--tls-key" : "--tls-cert");
  return out;
}

std::string help_text() { return line().help(); }
std::string completion_script() { return line().completion(); }

}  // namespace carve::kubernetes::node
