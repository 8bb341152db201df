#include "base/bytes.h"

#include <cstdio>

#include "base/decimal.h"

namespace carve {
namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

// If one name is a suffix of another, the longer name comes first, so that the whole suffix is matched.
constexpr Unit units[] = {
    {"B", 1},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"Ki", 1ull << 10},
    {"Mi", 1ull << 20},
    {"Gi", 1ull << 30},
    {"Ti", 1ull << 40},  // The last four as in Kubernetes.
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
};

constexpr const char* not_a_size = "is not a size; try 4GiB, 4096MiB or 4GB (10^9)";

}  // namespace

Result<Bytes> parse_bytes(std::string_view input) {
  const auto number = leading_decimal(input);
  if (!number) return failed(not_a_size);
  const std::string_view suffix = input.substr(number->length);
  for (const Unit& unit : units) {
    if (suffix != unit.name) continue;
    unsigned __int128 bytes = static_cast<unsigned __int128>(number->digits) * unit.bytes;
    for (unsigned i = 0; i < number->decimals; ++i) {
      if (bytes % 10 != 0) return failed("is not a whole number of bytes; use a smaller unit, as in 1536MiB");
      bytes /= 10;
    }
    if (bytes > UINT64_MAX) return failed("is too large; the maximum is 16 EiB");
    return Bytes{static_cast<uint64_t>(bytes)};
  }
  return failed(suffix.empty() ? "has no unit; try 4GiB, 4096MiB or 4GB (10^9)" : not_a_size);
}

BytesText text(Bytes amount) {
  BytesText out{};
  constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  for (int power = 4; power >= 0; --power) {
    const uint64_t unit = 1ull << (10 * power);
    if (amount.count < unit && power > 0) continue;
    const uint64_t whole = amount.count / unit, rest = amount.count % unit;
    const bool tenths = static_cast<unsigned __int128>(rest) * 10 % unit == 0;
    if (rest == 0) {
      std::snprintf(out.text, sizeof out.text, "%llu %s", static_cast<unsigned long long>(whole),
                    names[power]);
      return out;
    }
    if (tenths) {
      std::snprintf(out.text, sizeof out.text, "%llu.%llu %s", static_cast<unsigned long long>(whole),
                    static_cast<unsigned long long>(static_cast<unsigned __int128>(rest) * 10 / unit),
                    names[power]);
      return out;
    }
    if (power == 2) {  // MiB with one decimal is not exact, but easy to compare.
      std::snprintf(out.text, sizeof out.text, "%.1f MiB", static_cast<double>(amount.count) / (1 << 20));
      return out;
    }
  }
  std::snprintf(out.text, sizeof out.text, "%llu B", static_cast<unsigned long long>(amount.count));
  return out;
}

}  // namespace carve
