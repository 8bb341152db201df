// The amounts of a request on one device if the devices differ: `8GiB:30%,4GiB:10%` is two parts. The parts
// are in the order of the program's devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/failure.h"

namespace carve {

struct Part {
  // Memory: exactly one of these three.
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> memory_bp;     // A part of the device's usable memory.
  std::optional<uint32_t> memory_units;  // In the node's memory unit.
  std::optional<uint32_t> share_bp;      // Compute. Absent means no share.

  friend bool operator==(const Part&, const Part&) = default;
};

inline constexpr uint32_t max_memory_units = 1'000'000;  // In units of 128 MiB, this is more than any device
                                                         // has.
inline constexpr unsigned max_slice_devices = 16;  // Limit of the shared memory layout (wire/shm/layout.h).

// Parses "4GiB", "4GB", "50%" or "16 units" into one of the three forms. Sets no share. The error message is
// meant to follow the quoted text: "is not a size; ...".
Result<Part, std::string> parse_memory(std::string_view text);

// Parses a comma-separated list of MEMORY[:SHARE], with 1 to max_slice_devices parts. `memory` parses the
// memory of one part. The error message names the part and its text.
using MemoryParser = Result<Part, std::string> (*)(std::string_view);
Result<std::vector<Part>, std::string> parse_parts(std::string_view text, MemoryParser memory = parse_memory);

// Returns the list in the form that parse_parts() reads: "8GiB:30%,4GiB:10%".
std::string text(const std::vector<Part>&);

}  // namespace carve
