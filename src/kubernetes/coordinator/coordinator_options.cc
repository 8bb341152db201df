// carve-coordinator's command line: the options, the checks of their values, and the constraints between
// them.
#include "kubernetes/coordinator/coordinator_options.h"

#include "os/option_rows.h"

namespace carve::kubernetes::coordinator {
namespace {

using os::shown;

// Returns whether the text may be the name of a Kubernetes object (RFC 1123).
bool is_object_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == name.npos &&
         name.front() != '.' && name.back() != '.';
}

Outcome<void> set_lease(Options& o, const std::string& word) {
  const size_t slash = word.find('/');
  const std::string name_space = word.substr(0, slash),
                    name = slash == word.npos ? "" : word.substr(slash + 1);
  if (!is_object_name(name_space) || !is_object_name(name))
    return failure(FailureKind::invalid_argument, "--lease '{}' is not NAMESPACE/NAME, such as {}/{}",
                   shown(word), o.lease_namespace, o.lease_name);
  o.lease_namespace = name_space;
  o.lease_name = name;
  return {};
}

Outcome<void> set_namespace(Options& o, const std::string& word) {
  if (!is_object_name(word))
    return failure(FailureKind::invalid_argument, "--namespace '{}' is not a valid namespace name",
                   shown(word));
  o.name_space = word;
  return {};
}

template <os::TcpAddress Options::*field>
Outcome<void> set_address(Options& o, const std::string& word) {
  const auto address = os::parse_tcp_address(word);
  if (!address)
    return failure(FailureKind::invalid_argument, "'{}' is not an address and a port, such as {}",
                   shown(word), os::text(o.*field));
  o.*field = *address;
  return {};
}

const std::vector<os::OptionRow<Options>>& rows() {
  static const std::vector<os::OptionRow<Options>> rows = os::with_usual_rows<Options>({
      {.name = "--kubeconfig",
       .value = "FILE",
       .help = "kubeconfig file with a token or client certificate [the pod's service account]",
       .store = os::keep<&Options::connection, &kubernetes::ConnectionOptions::kubeconfig>},
      {.name = "--apiserver",
       .value = "URL",
       .help = "API server to use instead of --kubeconfig; requires --ca and --token-file",
       .store = os::keep<&Options::connection, &kubernetes::ConnectionOptions::apiserver>},
      {.name = "--ca",
       .value = "FILE",
       .help = "PEM file with the CA of --apiserver",
       .store = os::keep<&Options::connection, &kubernetes::ConnectionOptions::ca_file>},
      {.name = "--token-file",
       .value = "FILE",
       .help = "file with the token for --apiserver, read again each minute",
       .store = os::keep<&Options::connection, &kubernetes::ConnectionOptions::token_file>},
      {.name = "--namespace",
       .value = "NAMESPACE",
       .help = "namespace of ConfigMap carve-settings and Secret carve-tls [carve-system]",
       .store = set_namespace},
      {.name = "--lease",
       .value = "NAMESPACE/NAME",
       .help = "Lease of the scheduler in this pod [carve-system/carve-scheduler]",
       .store = set_lease},
      {.name = "--identity",
       .value = "HOST",
       .help = "identity of the scheduler in the Lease, up to the '_' [the host name]",
       .store = os::keep<&Options::identity>},
      {.name = "--extender",
       .value = "HOST:PORT",
       .help = "address of the scheduler extender, without TLS [127.0.0.1:9470]",
       .store = set_address<&Options::extender>},
      {.name = "--webhook",
       .value = "HOST:PORT",
       .help = "address of the webhooks and of /metrics, with TLS [0.0.0.0:9443]",
       .store = set_address<&Options::webhook>},
      {.name = "--health",
       .value = "HOST:PORT",
       .help = "address of /healthz and /readyz [0.0.0.0:9471]",
       .store = set_address<&Options::health>},
      {.name = "--tls-cert",
       .value = "FILE",
       .help = "PEM file with the certificate of --webhook and its chain\n"
               "[created by the coordinator, in Secret carve-tls]",
       .store = os::keep<&Options::tls_certificate>},
      {.name = "--tls-key",
       .value = "FILE",
       .help = "PEM file with the certificate's key, without a passphrase",
       .store = os::keep<&Options::tls_key>},
      {.name = "--allow-unknown-gpu-requests",
       .help = "admit pods with GPU requests that Carve does not support",
       .store = os::raise<&Options::allows_unknown_gpu_requests>},
  });
  return rows;
}

const os::CommandLine& line() {
  static const os::CommandLine line = os::command_line(
      "carve-coordinator",
      "carve-coordinator: chooses the devices of pods in a Kubernetes cluster. It serves the scheduler next "
      "to it and the API server's webhooks.",
      "SIGTERM and SIGINT end the coordinator; pods keep running.\n"
      "Exit status: 0 ended by a signal, 2 wrong command line, 1 any other failure; the reason is on "
      "stderr.\n"
      "  carve-coordinator --kubeconfig ~/.kube/config --webhook 127.0.0.1:9443",
      rows());
  return line;
}

// Checks the constraints between options.
Outcome<void> consistent(const Options& o) {
  if (o.tls_certificate.empty() != o.tls_key.empty())
    return failure(FailureKind::invalid_argument, "{} requires {}; TLS needs a certificate and its key",
                   o.tls_key.empty() ? "--tls-cert" : "--tls-key",
                   o.tls_key.empty() ? "--tls-key" : "--tls-cert");
  if (!os::is_loopback(o.extender))
    return failure(
        FailureKind::invalid_argument,
        "--extender {}: must be a loopback address, because any client can bind pods; use 127.0.0.1:{}",
        os::text(o.extender), o.extender.port);
  if (o.identity.empty() || o.identity.find('_') != o.identity.npos)
    return failure(FailureKind::invalid_argument, "--identity '{}' is not a host name", shown(o.identity));
  return {};
}

}  // namespace

std::string Options::lease_path() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", lease_namespace, lease_name);
}

std::string help_text() { return line().help(); }

std::string completion_script() { return line().completion(); }

Outcome<Options> parse_options(int argc, char** argv, const std::string& host_name) {
  Options o{.identity = host_name};
  const auto parsed = line().parse(
      argc, argv, [&](size_t row, const std::string& value) { return rows()[row].store(o, value); },
      [&] { return o.mode != Options::Mode::serve; });
  if (!parsed) return tl::unexpected(parsed.error());
  if (o.mode != Options::Mode::serve) return o;
  if (const auto good = consistent(o); !good) return tl::unexpected(good.error());
  return o;
}

}  // namespace carve::kubernetes::coordinator
