// What carved was asked to do on its command line, with the defaults of this user filled in.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/failure.h"
#include "core/slice.h"
#include "node/slice/audit.h"

namespace carve::node {

struct Options {
  std::string state, socket, cdi_dir = "/var/run/cdi";
  std::string sim;  // Empty: real devices.
  Strategy strategy = Strategy::binpack;
  std::string topology;  // A file; empty: as the driver says.
  std::optional<Bytes> reserve;
  bool contexts_in_slice = true;
  AuditAction audit = AuditAction::report;
  OverQuotaAction over_quota = OverQuotaAction::refuse;
  std::optional<Policy> policy;  // By --policy or by its label.
  std::map<std::string, std::string> labels;
  bool policy_per_slice = false;
  bool admit_best_effort = false;
  bool overcommit_compute = false;
  std::string metrics_host;   // Empty: metrics are on the API's socket alone.
  uint16_t metrics_port = 0;  // 0: any that is free; the log says which.
  bool metrics_any = false;   // Not on loopback addresses alone.
  std::string log_level = "info";

  // What is not the agent itself.
  enum class Mode { agent, help, version, fd_store, measure } mode = Mode::agent;
  std::string fd_store_dir, measure_libcuda, measure_uuid;
};

// The user's surroundings, as main() finds them.
struct Surroundings {
  unsigned uid = 0;
  std::string home, xdg_runtime_dir, xdg_state_home, working_directory;
};

// Failure: a sentence about the option that is wrong (exit status 2).
Outcome<Options> parse_options(int argc, char** argv, const Surroundings&);

extern const char* const help_text;

}  // namespace carve::node
