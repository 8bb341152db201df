// The options of carved's command line, with this user's defaults.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "node/api/operators.h"
#include "node/settings/node_labels.h"
#include "node/settings/settings.h"
#include "os/tcp.h"

namespace carve::node {

struct Options {
  std::string state, socket, cdi_dir;
  std::string sim;  // Empty for real devices.
  std::string driver_root,
      libraries;  // For an agent in a container (cdi/host_files.h); empty on the host.
  Strategy strategy = Strategy::binpack;
  Bookkeeper bookkeeper = Bookkeeper::agent;
  std::string topology;  // A file; if empty, the driver reports the links.
  std::optional<Bytes> reserve;
  std::optional<Bytes> spill_limit;  // If absent, half of the host's memory.
  bool contexts_in_slice = true;
  std::string host_name;   // From the surroundings.
  std::string kernel_log;  // If empty, the default is used.
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  GuardChoice guard = GuardChoice::library;
  std::optional<Policy> policy;  // Set by --policy or by its label.
  LabelChanges labels;
  bool policy_per_slice = false;
  bool admit_best_effort = true;
  bool overcommit_compute = false;
  std::optional<MemoryUnit> memory_unit;                  // If absent, the last unit is used.
  uint64_t start_delay_ns = 0;                            // Only with `sim`.
  std::optional<uint32_t> controller_uid;                 // This user may act for all users.
  std::string operators_group = default_operators_group;  // Empty if no group may operate.
  std::optional<os::TcpAddress> metrics;                  // If absent, only the API's socket serves metrics.
  bool metrics_any = false;                               // Addresses other than loopback are allowed.
  bool dcgm_names = true;                                 // Metrics include DCGM's series.
  bool restart_after_crash = false;  // For a container, which kubelet would restart later.
  std::string log_level = "info";

  // `agent` runs the agent. The other modes are short tasks of the same executable.
  enum class Mode { agent, help, version, completion, fd_store, inspect, measure } mode = Mode::agent;
  std::string fd_store_dir, measure_libcuda, measure_uuid;
};

// The user's environment, as main() reads it.
struct Surroundings {
  unsigned uid = 0;
  std::string home, xdg_runtime_dir, xdg_state_home, working_directory;
  std::string host_name;  // NODE_NAME, which Kubernetes sets for the agent, or the machine's name.
};

// Returns the options, or a message about the invalid option (exit status 2).
Outcome<Options> parse_options(int argc, char** argv, const Surroundings&);

std::string help_text();

// Returns the script of `carved --completion bash`.
std::string completion_script();

// Returns the agent's settings: the options, and the facts found at the start.
Settings settings_of(const Options&, const Paths&, const std::optional<place::Topology>&);

}  // namespace carve::node
