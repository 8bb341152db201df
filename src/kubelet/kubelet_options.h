// carve-kubelet's command line.
#pragma once

#include <string>

#include "core/failure.h"
#include "kube/client/connection.h"

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
  kube::ConnectionOptions api;
  std::string log_level = "info";
};

// `node_name`: of the environment; empty: it has none.
Outcome<Options> parse_options(int argc, char** argv, const std::string& node_name);
std::string help_text();
std::string completion_script();

}  // namespace carve::kubelet
