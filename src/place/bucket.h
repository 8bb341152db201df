// The coarse scale on which gradients are compared: floor(100 / (1 + exp(-dF / 1000))), where dF is the
// gradient in thousandths of a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace carve::place {

// score >= s exactly if dF >= 1000 * ln(s / (100 - s)). These are the limits for s = 51 ... 99 in 1/10000 of
// a thousandth of a device, rounded up, so that the result does not depend on a machine's exp(). s = 50
// begins at 0, and the scores below it are symmetric.
inline constexpr std::array<int64_t, 49> bucket_limits = {
    400054,   800428,   1201444,  1603427,  2006707,  2411621,  2818512,  3227734,  3639654,  4054652,
    4473123,  4895483,  5322169,  5753642,  6190393,  6632943,  7081851,  7537719,  8001194,  8472979,
    8953841,  9444617,  9946226,  10459686, 10986123, 11526796, 12083113, 12656664, 13249255, 13862944,
    14500102, 15163475, 15856273, 16582281, 17346011, 18152900, 19009588, 19924302, 20907411, 21972246,
    23136350, 24423471, 25866894, 27515354, 29444390, 31780539, 34760987, 38918203, 45951199,
};

// Returns floor(100 / (1 + exp(-dF / 1000))) of a gradient in basis points * 2^30.
inline uint8_t bucket(int64_t gradient) {
  // One unit of `bucket_limits` is 1/10000 milli-device = 1/1000 basis point.
  const bool negative = gradient < 0;
  const auto size = static_cast<unsigned __int128>(negative ? -gradient : gradient) * 1000;
  const auto reached = [&](int64_t limit) { return size >= static_cast<unsigned __int128>(limit) << 30; };
  const auto beyond = [&](int64_t limit) { return size > static_cast<unsigned __int128>(limit) << 30; };
  if (!negative)
    return static_cast<uint8_t>(
        50 + (std::ranges::partition_point(bucket_limits, reached) - bucket_limits.begin()));
  if (size == 0) return 50;
  return static_cast<uint8_t>(49 -
                              (std::ranges::partition_point(bucket_limits, beyond) - bucket_limits.begin()));
}

}  // namespace carve::place
