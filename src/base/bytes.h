// Amounts of memory. Inside Carve an amount is always a count of bytes. Units exist only where users read or
// write: 4GiB is 4 * 2^30, 4GB is 4 * 10^9. A bare number is rejected, because "4096" means bytes, MiB or GiB
// depending on the product.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace carve {

// A count of bytes. Arithmetic that could overflow uses plus() and minus().
struct Bytes {
  uint64_t count = 0;

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }

// Returns the sum, or an error if it does not fit in 64 bits.
constexpr Result<Bytes> plus(Bytes a, Bytes b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a.count, b.count, &sum))
    return failed("this amount of memory does not fit in 64 bits");
  return Bytes{sum};
}

// Returns the difference, or zero if it would be negative.
constexpr Bytes minus(Bytes a, Bytes b) { return {a.count > b.count ? a.count - b.count : 0}; }

// Returns the next multiple of `step` (a power of two); saturates at the largest multiple.
constexpr Bytes rounded_up(Bytes a, Bytes step) {
  const uint64_t mask = step.count - 1;
  return {a.count > UINT64_MAX - mask ? ~mask : (a.count + mask) & ~mask};
}

// Parses "4GiB", "1.5GiB", "4096MiB", "512KiB", "100B", "4GB" (10^9), and "4Gi", which is 4GiB. Spaces, bare
// numbers and signs are rejected. A fraction must result in whole bytes.
Result<Bytes> parse_bytes(std::string_view text);

// Space for the longest formatted amount.
struct BytesText {
  char text[48];
  constexpr const char* c_str() const { return text; }
  constexpr operator std::string_view() const { return text; }
};

// Formats an amount for users: "4 GiB", "1.5 GiB", "22731 MiB", "100 B". Uses the largest binary unit in
// which the amount is exact with at most one decimal, otherwise MiB with one decimal.
BytesText text(Bytes);

}  // namespace carve
