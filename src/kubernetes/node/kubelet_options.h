// carve-kubelet's command line.
#pragma once

#include <optional>
#include <string>

#include "core/failure.h"
#include "kubernetes/api/client/connection.h"
#include "os/tcp.h"

namespace carve::kubernetes::node {

struct Options {
  enum class Mode { serve, help, version, completion };
  Mode mode = Mode::serve;
  std::string node;          // If empty, NODE_NAME is used.
  std::string agent_socket;  // If empty, found in the same way as by carve.
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string plugin_dir;     // If empty, device-plugins in kubelet's directory.
  std::string pod_resources;  // If empty, pod-resources/kubelet.sock in kubelet's directory.
  std::string runtime = "/run/containerd/containerd.sock";
  bool ends_pods = false;  // Unhealthy devices of a node with DRA get the taint effect NoExecute.
  std::optional<os::TcpAddress> metrics{{.host = "0.0.0.0", .port = 9472}};  // No value disables /metrics.
  std::string tls_certificate, tls_key;  // PEM files; if empty, a certificate is created.
  kubernetes::ConnectionOptions api;
  std::string log_level = "info";
};

// `node_name` comes from the environment and is empty if unset.
Outcome<Options> parse_options(int argc, char** argv, const std::string& node_name);
std::string help_text();
std::string completion_script();

}  // namespace carve::kubernetes::node
