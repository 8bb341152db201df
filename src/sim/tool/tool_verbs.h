// The verbs of carve-sim and their shared declarations. A verb returns the exit status; Usage (status 2) and
// Refused (status 1) carry a text for stderr.
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

// How long (ns) a verb waits for a device whose lock is held, and the error afterwards.
inline constexpr uint64_t tool_timeout = 5'000'000'000;
inline constexpr const char* set_stopped =
    "a client that was stopped in the middle of a change holds the device; continue it, or end it";

uint64_t whole_number(const std::string& text, const std::string& what);
uint64_t nanoseconds(const std::string& text, const std::string& what);  // 500ms, 2s, 20us, 7ns
bool wants_json(const Arguments&);       // -o json; throws Usage for another format.
std::string quoted(const std::string&);  // As a JSON string.

int create(const Arguments&);
int show(const Arguments&);
int fault(const Arguments&);
int profiles(const Arguments&);

}  // namespace carve::sim
