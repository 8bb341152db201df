// The commands of carve-sim and their shared declarations. A command returns the exit status. Usage (status
// 2) and Refused (status 1) carry a message for stderr.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace carve::sim {

struct Usage : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;  // "--device 1" is {"device", "1"}; a flag has an empty value.
};

// Time (ns) that a command waits for a device whose lock is held, and the error afterwards.
inline constexpr uint64_t tool_timeout = 5'000'000'000;
inline constexpr const char* set_stopped =
    "the device is locked by a client that was stopped in the middle of a change; resume or end that client";

uint64_t whole_number(const std::string& text, const std::string& what);
uint64_t nanoseconds(const std::string& text, const std::string& what);  // 500ms, 2s, 20us, 7ns
bool wants_json(const Arguments&);       // -o json; throws Usage for another format.
std::string quoted(const std::string&);  // As a JSON string.

int create(const Arguments&);
int show(const Arguments&);
int fault(const Arguments&);
int profiles(const Arguments&);

}  // namespace carve::sim
