// A profile is a YAML file that describes one model of device: sim/profiles/*.yaml. A set is one or more
// profiles times a count, in one word ("a10x2", "a10x2,t4", "a10x2@550" with driver 550) or in a YAML file with
// topology:
//   driver: {version: 550.54.14, cuda: 12.4}
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

#include "sim/drivers/drivers.h"
#include "sim/model/device_file.h"

namespace carve::sim {

inline constexpr uint64_t MiB = 1ull << 20;

// The request cannot be carried out. The message contains the reason and a valid request.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Plan {
  std::vector<Facts> devices;
  unsigned driver = any_driver.major;
  std::string driver_version = any_driver.version;
  int cuda_version = any_driver.cuda_version;
};

// Returns the folder of the profiles, relative to this executable: ../lib/carve/sim/profiles.
std::filesystem::path profile_directory();
// Returns the folder of the libraries of a driver: ../lib/carve/sim, or ../lib/carve/sim/550.
std::filesystem::path library_directory(unsigned driver);
std::vector<std::string> profile_names();
Facts read_profile(const std::string& name);
Plan read_spec(const std::string& spec);

}  // namespace carve::sim
