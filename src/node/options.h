// The options of carved's command line, with this user's defaults.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "node/slice/node_labels.h"
#include "node/slice/settings.h"
#include "os/tcp.h"

namespace carve::node {

struct Options {
  std::string state, socket, cdi_dir;
  std::string sim;  // Empty: real devices.
  std::string driver_root,
      libraries;  // Of an agent in a container (cdi/host_files.h); empty: it is on the host.
  Strategy strategy = Strategy::binpack;
  Bookkeeper bookkeeper = Bookkeeper::agent;
  std::string topology;  // A file; empty: the links come from the driver.
  std::optional<Bytes> reserve;
  bool contexts_in_slice = true;
  std::string kernel_log;  // Empty: the default.
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  std::optional<Policy> policy;  // Set by --policy or by its label.
  LabelChanges labels;
  bool policy_per_slice = false;
  bool admit_best_effort = true;
  bool overcommit_compute = false;
  std::optional<MemoryUnit> memory_unit;   // Absent: the last one.
  uint64_t start_delay_ns = 0;             // With `sim` alone.
  std::optional<uint32_t> controller_uid;  // May act for all users.
  std::optional<os::TcpAddress> metrics;   // Absent: metrics are served on the API's socket only.
  bool metrics_any = false;                // Addresses other than loopback are allowed.
  std::string log_level = "info";

  // agent: serve. The others are short tasks of the same executable.
  enum class Mode { agent, help, version, completion, fd_store, inspect, measure } mode = Mode::agent;
  std::string fd_store_dir, measure_libcuda, measure_uuid;
};

// The user's environment, as main() reads it.
struct Surroundings {
  unsigned uid = 0;
  std::string home, xdg_runtime_dir, xdg_state_home, working_directory;
};

// Returns the options, or a sentence about the wrong option (exit status 2).
Outcome<Options> parse_options(int argc, char** argv, const Surroundings&);

std::string help_text();

// Returns the script of `carved --completion bash`.
std::string completion_script();

// Returns the agent's settings: the options, and what was found at the start.
Settings settings_of(const Options&, const Paths&, const std::optional<place::Topology>&);

}  // namespace carve::node
