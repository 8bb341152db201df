// A profile is a YAML file that describes one model of device: sim/profiles/*.yaml. A set is one or more
// profiles times a count, in one word ("a10x2", "a10x2,t4") or in a YAML file with topology:
//   driver: {version: 580.65.06, cuda: 13.0}
//   devices:
//     - {profile: a10, count: 2, numa: 0}
//     - {profile: t4, numa: 1, memory: {native: 8192MiB}}    # single facts can be overridden
//   nvlink:
//     - [0, 1, 4]                                            # device, device, links between them
//
// Only this tool reads YAML. The libraries map the files that it writes.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/model/device_file.h"

namespace carve::sim {

inline constexpr uint64_t MiB = 1ull << 20;

// The request cannot be carried out. The text has the reason and a valid request.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Plan {
  std::vector<Facts> devices;
  std::string driver_version = "580.65.06";
  int cuda_version = 13000;
};

// Returns the folder of the profiles, relative to this executable: ../lib/carve/sim/profiles.
std::filesystem::path profile_directory();
std::vector<std::string> profile_names();
Facts read_profile(const std::string& name);
Plan read_spec(const std::string& spec);

}  // namespace carve::sim
