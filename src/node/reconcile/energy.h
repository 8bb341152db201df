// Divides the energy that a device has used since the last sample among its slices, by their busy time. Time
// in which no slice was busy belongs to no slice, unless a slice has the whole device. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace carve::node {

// One slice's use of the device since the last sample.
struct EnergyUse {
  uint64_t busy_ns = 0;
  bool has_whole_device = false;  // It also pays for the time in which it is idle.
};

// Returns each slice's part in microjoules, in the order of `uses`. The sum is at most `microjoules`: slices
// that were busy at the same time share the energy of that time.
inline std::vector<uint64_t> split_energy(uint64_t microjoules, uint64_t elapsed_ns,
                                          std::span<const EnergyUse> uses) {
  const auto busy = [&](const EnergyUse& use) {
    return use.has_whole_device ? elapsed_ns : std::min(use.busy_ns, elapsed_ns);
  };
  uint64_t all = 0;
  for (const EnergyUse& use : uses) all += busy(use);
  const uint64_t time = std::max(elapsed_ns, all);
  std::vector<uint64_t> out;
  for (const EnergyUse& use : uses)
    out.push_back(
        time == 0 ? 0
                  : static_cast<uint64_t>(static_cast<unsigned __int128>(microjoules) * busy(use) / time));
  return out;
}

}  // namespace carve::node
