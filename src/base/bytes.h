// Amounts of memory. Inside Carve an amount is a count of bytes and nothing else; units exist only
// where people read or write: 4GiB is 4 * 2^30, 4GB is 4 * 10^9, and a bare number is refused,
// because "4096" has meant bytes, MiB and GiB in different products and guessing costs somebody a device.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace carve {

// A count of bytes. Arithmetic that could wrap goes through plus() and minus().
struct Bytes {
  uint64_t count = 0;

  friend constexpr bool operator==(Bytes, Bytes) = default;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }

// The sum, or an error where it does not fit 64 bits.
constexpr Result<Bytes> plus(Bytes a, Bytes b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a.count, b.count, &sum))
    return failed("this amount of memory does not fit 64 bits");
  return Bytes{sum};
}

// The difference, never below zero: what is left when more was taken than there was.
constexpr Bytes minus(Bytes a, Bytes b) { return {a.count > b.count ? a.count - b.count : 0}; }

// The next multiple of `step` (a power of two); saturates at the largest multiple.
constexpr Bytes rounded_up(Bytes a, Bytes step) {
  const uint64_t mask = step.count - 1;
  return {a.count > UINT64_MAX - mask ? ~mask : (a.count + mask) & ~mask};
}

// "4GiB", "1.5GiB", "4096MiB", "512KiB", "100B", "4GB" (10^9). No space, no bare number, no sign.
// A fraction must come out as whole bytes.
Result<Bytes> parse_bytes(std::string_view text);

// Room for the longest text of an amount, ready to print.
struct BytesText {
  char text[48];
  constexpr const char* c_str() const { return text; }
  constexpr operator std::string_view() const { return text; }
};

// For people: "4 GiB", "1.5 GiB", "22731 MiB", "100 B": the largest binary unit that shows the amount
// exactly with at most one decimal, else MiB with one decimal.
BytesText text(Bytes);

}  // namespace carve
