// How much of a device's compute was promised, and what that leaves of exactness.
//
// Shares up to 100 % are admitted. Above what is left after the changes of slices themselves the promises
// can no longer all be kept to the point: a change costs c, between two of them lies a quantum
// Q = clamp(c / 2 %, 2 ms, 20 ms), and 1 % more is kept for what the arbiter does not see. With c = 100 us:
// Q = 5 ms, and above 97 % the device is "tight". Above 100 % nobody gets what he was promised when all are
// busy: refused, unless whoever runs the agent wants it so ("over-committed").
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/share.h"

namespace carve {

inline constexpr uint64_t assumed_switch_ns = 100'000;  // A change of slices, where none was measured.

// Between two changes of batch slices, for a change that costs `switch_ns`.
constexpr uint64_t quantum_ns(uint64_t switch_ns) {
  return std::clamp<uint64_t>(switch_ns * 50, 2'000'000, 20'000'000);
}

// The most of a device that can be promised to the point.
constexpr Share comfortable(uint64_t switch_ns) {
  const uint64_t lost = switch_ns * 10000 / quantum_ns(switch_ns) + 100;
  return {static_cast<uint32_t>(10000 - std::min<uint64_t>(lost, 10000))};
}

// "", "tight", "over-committed": `promised_bp` is the sum of the enforced shares, which may exceed 100 %.
constexpr std::string_view commitment(uint64_t promised_bp, uint64_t switch_ns) {
  if (promised_bp > whole_device.basis_points) return "over-committed";
  return promised_bp > comfortable(switch_ns).basis_points ? "tight" : "";
}

}  // namespace carve
