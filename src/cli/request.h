// The options that say what a slice shall be, the same for `run`, `slice create` and `explain`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "wire/api/documents.h"

namespace carve::cli {

// As typed.
struct SliceOptions {
  std::string memory, total_memory, compute;
  uint32_t devices = 1;
  std::string device, policy, strategy, isolation = "memory", name, oversubscribe, spill;
  bool exclusive = false, latency = false;
};

void add_slice_options(CLI::App* verb, SliceOptions& options);

// Parsed at the edge: the request, or a sentence that names the option, the value and what would be right.
Result<api::SliceRequest, std::string> to_request(const SliceOptions& options);

// A request id that no other invocation has.
std::string new_request_id();

}  // namespace carve::cli
