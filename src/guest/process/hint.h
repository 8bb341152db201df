// CUDA_DEVICE_MEMORY_LIMIT and CUDA_DEVICE_MEMORY_LIMIT_<i>, which programs already set for other products.
// The value is the program's own limit, so it can lower the granted quota but never raise it. <i> is the
// device's index inside the slice; the variable with an index takes precedence over the one without.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carve::guest {

// Parses "1073741824", "1024m", "1G": whole bytes, or a number followed by k, m or g (powers of 1,024) and
// nothing else. Any other text is ignored, and so is 0, which those products read as "no limit".
constexpr std::optional<uint64_t> parse_limit(std::string_view text) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(text[digits] - '0'), &value))
      return std::nullopt;
  }
  if (digits == 0 || value == 0 || text.size() > digits + 1) return std::nullopt;
  if (text.size() == digits) return value;
  unsigned shift = 0;
  switch (text[digits]) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    default: return std::nullopt;
  }
  if (value >> (64 - shift) != 0) return std::nullopt;
  return value << shift;
}

// Returns the environment's limit for the device at that index, or UINT64_MAX if there is none.
uint64_t limit_hint(unsigned device);

}  // namespace carve::guest
