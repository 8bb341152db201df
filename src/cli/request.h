// The options that say what a slice shall be, the same for `run`, `slice create` and `explain`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "wire/api/documents.h"

namespace carve::cli {

// As typed.
struct SliceOptions {
  std::string memory, total_memory, compute;
  uint32_t devices = 1;
  std::string device, policy, strategy, isolation, name, application, oversubscribe, spill;
  bool exclusive = false, latency = false;
};

void add_slice_options(CLI::App* verb, SliceOptions& options);

// Parsed at the edge: the request, or a sentence that names the option, the value and what would be right.
Result<api::SliceRequest, std::string> to_request(const SliceOptions& options);

// What is to change of a living slice, as typed, and parsed in the same way.
struct ChangeOptions {
  std::string memory, compute, policy;
  bool latency = false, batch = false;
};
void add_change_options(CLI::App* verb, ChangeOptions& options);
Result<api::SliceChange, std::string> to_change(const ChangeOptions& options);

inline const std::vector<std::string> policy_words{"fixed-share", "guaranteed-burst-share",
                                                   "native-burst-share"};

// A request id that no other invocation has.
std::string new_request_id();

}  // namespace carve::cli
