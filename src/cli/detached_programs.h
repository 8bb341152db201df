// Programs that `carve run -d` started, as the verbs `run`, `logs`, `wait` and `ps` use them
// (runner/detached.h).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/variables.h"
#include "cli/verbs.h"
#include "runner/detached.h"
#include "wire/api/slice.h"

namespace carve::cli {

// Starts the program in its slice, which has been granted, and prints the slice's name. If it fails later, it is
// started again up to `max_restarts` times. If this fails, the
// slice is ended. Returns the exit status.
int run_detached(const client::AgentClient& agent, const api::Slice& slice,
                 const std::vector<std::string>& program, const Variables& variables, uint32_t max_restarts);

// Returns the exit status of the detached program that ran in the ended slice; "-" if it is not kept.
std::string kept_exit_status(const std::string& agent_socket, const api::Slice& slice);

// Returns whether the user has started a detached program in a slice with this name.
bool has_detached_program(const Context& context, const std::string& slice);

// Returns the program. If there is none, prints the reason, sets the exit status and returns no value.
std::optional<runner::DetachedProgram> required_program(Context& context, const std::string& slice);

struct LogPrinting {
  bool follow = false;
  bool previous = false;
  std::optional<uint32_t> tail = {};
  std::chrono::seconds since{0};  // 0 means all lines.
  bool has_times = false;         // Begins each line with its time.
};

// Prints the output of the slice's detached program: its standard output and error as the same streams, and
// the supervisor's messages on standard error.
void print_logs(Context& context, const std::string& slice, const LogPrinting& printing);

}  // namespace carve::cli
