// How much of a device's compute is granted, and whether all shares can be met exactly.
//
// Shares up to 100 % are admitted. Switches between slices take a part of the device, so above a certain sum
// not all shares can be met exactly. If a switch costs c, the quantum between two switches is Q = clamp(c / 2
// %, 2 ms, 20 ms). Another 1 % is reserved for time that the arbiter does not measure. With c = 100 us, Q is
// 5 ms, and above 97 % the device is "tight". Above 100 %, the shares cannot all be met when all slices are
// busy. Such requests are refused unless the operator allows them ("over-committed").
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/share.h"
#include "core/words.h"

namespace carve {

inline constexpr uint64_t assumed_switch_ns = 100'000;  // Cost of a switch, if it was not measured.

// Returns the time between two switches of batch slices, for a switch that costs `switch_ns`.
constexpr uint64_t quantum_ns(uint64_t switch_ns) {
  return std::clamp<uint64_t>(switch_ns * 50, 2'000'000, 20'000'000);
}

// Returns the largest sum of shares that can be met exactly.
constexpr Share comfortable(uint64_t switch_ns) {
  const uint64_t lost = switch_ns * 10000 / quantum_ns(switch_ns) + 100;
  return {static_cast<uint32_t>(10000 - std::min<uint64_t>(lost, 10000))};
}

enum class Commitment : uint8_t {
  normal = 0,          // All shares can be met.
  tight = 1,           // Not all shares can be met exactly.
  over_committed = 2,  // More than the whole device is granted.
};
template <>
struct Words<Commitment> {
  static constexpr const char* kind = "commitment";
  static constexpr std::string_view words[] = {"normal", "tight", "over-committed"};
};

// Returns the state for the sum of the enforced shares, `promised_bp`, which may exceed 100 %.
constexpr Commitment commitment(uint64_t promised_bp, uint64_t switch_ns) {
  if (promised_bp > whole_device.basis_points) return Commitment::over_committed;
  return promised_bp > comfortable(switch_ns).basis_points ? Commitment::tight : Commitment::normal;
}

}  // namespace carve
