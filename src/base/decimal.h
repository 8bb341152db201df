// Parses numbers such as "12.5" without floating point, so that the value is stored exactly as typed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carve {

struct Decimal {
  uint64_t digits = 0;    // All digits read as one integer: "12.5" is 125.
  unsigned decimals = 0;  // Number of digits after the point; 1 for "12.5".
  size_t length = 0;      // Characters read.
};

// Parses the unsigned decimal number at the start of `text`, at most 19 digits. Returns no value if there is
// none, if it has more digits, or if the point lacks a digit on either side.
constexpr std::optional<Decimal> leading_decimal(std::string_view text) {
  Decimal d;
  bool point = false;
  unsigned read = 0;
  for (; d.length < text.size(); ++d.length) {
    const char c = text[d.length];
    if (c == '.' && !point && d.length > 0) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (++read > 19) return std::nullopt;
      d.digits = d.digits * 10 + static_cast<uint64_t>(c - '0');
      d.decimals += point;
    } else {
      break;
    }
  }
  if (read == 0 || (point && d.decimals == 0)) return std::nullopt;
  return d;
}

}  // namespace carve
