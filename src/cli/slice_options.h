// The options that describe a slice. `run`, `slice create` and `explain` share them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "wire/api/slice.h"

namespace carve::cli {

// The options as the user typed them.
struct SliceOptions {
  std::string memory, total_memory, compute, parts;
  uint32_t devices = 1;
  std::string device, policy, strategy, isolation, name, application, oversubscribe, spill;
  bool exclusive = false, latency = false;
  uint32_t memory_units = 0;  // 0 if not given.
  std::string account;
  std::vector<std::string> labels;  // KEY=VALUE
};

void add_slice_options(CLI::App* verb, SliceOptions& options);

// Returns the request, or a message that names the option, its value and the allowed values.
Result<api::SliceRequest, std::string> to_request(const SliceOptions& options);

// The options of a change to a running slice, as the user typed them.
struct ChangeOptions {
  std::string memory, compute, policy;
  bool latency = false, batch = false;

  friend bool operator==(const ChangeOptions&, const ChangeOptions&) = default;
};
void add_change_options(CLI::App* verb, ChangeOptions& options);
Result<api::SliceChange, std::string> to_change(const ChangeOptions& options);

// The words of an enumeration, for CLI::IsMember.
template <Worded E>
std::vector<std::string> words_of() {
  return {std::begin(Words<E>::words), std::end(Words<E>::words)};
}

// Returns a unique request id of 16 random bytes.
std::string new_request_id();

}  // namespace carve::cli
