// The options of carve-controller's command line, with this user's defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/usage_tokens.h"
#include "controller/known_node.h"
#include "os/command_line.h"
#include "os/tcp.h"

namespace carve::controller {

inline constexpr size_t max_nodes = 64;  // Each node has a thread.
inline constexpr int64_t max_expected_start_s = 86'400;
inline constexpr int64_t max_usage_interval_s = 3600;
inline constexpr size_t max_node_name_bytes = 48;  // The limit for all names that the controller assigns.

struct Options {
  std::vector<NodeAddress> nodes;  // In the order of the command line.
  std::string state, socket;
  // Absent if the API is served only on its unix socket. A port in use is a startup error only if the user
  // requested the port.
  std::optional<os::TcpAddress> listen = os::TcpAddress{"127.0.0.1", 8470};
  bool listen_requested = false;
  // The kubeconfig file of a cluster whose nodes' usage records are copied, or "pod" for the service account of
  // this pod. Empty if there is no cluster.
  std::string kubernetes_nodes;
  UsageAccount usage_account;            // With which the records are read.
  int64_t usage_interval_s = 60;         // How often each of these nodes is read.
  std::string tls_certificate, tls_key;  // PEM files; either both are set or neither.
  std::string console;             // Folder of the built console, or "none". Empty for the installed one.
  std::vector<std::string> hosts;  // Names of this controller, in addition to loopback and `listen`.
  int64_t expected_start_s = 600;  // How long the start of a node is expected to take.
  int64_t orphan_grace_s = 60;     // How long a program without a record keeps running.
  uint32_t account_quota_percent = 25;  // Percentage of the objects of each kind.
  bool allows_unknown_gpu_requests = false;
  bool kubernetes = false;  // Objects are custom resources of a cluster.
  std::string kubeconfig;   // Empty for the pod's service account.
  std::string log_level = "info";

  // `serve` runs the controller. The other modes print a text.
  enum class Mode { serve, help, version, completion, custom_resources } mode = Mode::serve;
};

// The value of --kubernetes-nodes inside the cluster.
inline constexpr const char* pod_account = "pod";

// The user's environment, as main() reads it.
struct Surroundings {
  unsigned uid = 0;
  std::string home, xdg_state_home, working_directory;
  std::string host_name;
  std::string agent_socket;       // Socket of this machine's agent (client::find_socket).
  std::string controller_socket;  // client::find_controller_socket
};

// Returns the options, or a message about the invalid option (exit status 2).
Outcome<Options> parse_options(int argc, char** argv, const Surroundings&);

// Returns whether the text is a valid node name: 1 to 48 characters from a-z, 0-9 and '-', without '-' at its
// ends.
bool is_node_name(std::string_view);

std::string help_text();

// Returns the script of `carve-controller --completion bash`.
std::string completion_script();

// The table of the options. Options that print a text come first: if one of them is given, the rest of the
// command line is ignored.
extern const std::vector<os::OptionRow<Options>> option_rows;

}  // namespace carve::controller
