// carve-kubelet's command line.
#pragma once

#include <optional>
#include <string>

#include "core/failure.h"
#include "kube/client/connection.h"
#include "os/tcp.h"

namespace carve::kubelet {

struct Options {
  enum class Mode { serve, help, version, completion };
  Mode mode = Mode::serve;
  std::string node;          // Empty: NODE_NAME.
  std::string agent_socket;  // Empty: found as carve does.
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string plugin_dir;     // Empty: device-plugins in kubelet's folder.
  std::string pod_resources;  // Empty: pod-resources/kubelet.sock in kubelet's folder.
  std::string runtime = "/run/containerd/containerd.sock";
  std::optional<os::TcpAddress> metrics{{.host = "0.0.0.0", .port = 9472}};  // None: there is no such port.
  std::string tls_certificate, tls_key;  // PEM files of that port; both or none: a certificate is made.
  kube::ConnectionOptions api;
  std::string log_level = "info";
};

// `node_name`: of the environment; empty: it has none.
Outcome<Options> parse_options(int argc, char** argv, const std::string& node_name);
std::string help_text();
std::string completion_script();

}  // namespace carve::kubelet
