// A share of one device's compute, in basis points: 1 is 0.01 % of a device, 10000 the whole device. They are
// integers, so that shares add up exactly and an invoice can be checked by hand.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace carve {

struct Share {
  uint32_t basis_points = 0;

  friend constexpr bool operator==(Share, Share) = default;
  friend constexpr auto operator<=>(Share, Share) = default;
};

inline constexpr Share whole_device{10000};

// Parses "30%", "12.5%", "0.01%", "100%": more than 0, at most 100, at most two decimals, with the percent
// sign.
Result<Share> parse_share(std::string_view text);

struct ShareText {
  char text[16];
  constexpr const char* c_str() const { return text; }
  constexpr operator std::string_view() const { return text; }
};

// Formats "30%", "12.5%", "0.01%".
ShareText text(Share);

}  // namespace carve
