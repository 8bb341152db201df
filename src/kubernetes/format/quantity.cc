#include "kubernetes/format/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace carve::kubernetes {
namespace {

using Wide = unsigned __int128;

constexpr Wide largest = INT64_MAX;
constexpr size_t max_digits = 18;

// The number digits / 10^places.
struct Decimal {
  Wide digits = 0;
  unsigned places = 0;
};

struct Suffix {
  std::string_view text;
  uint64_t factor;
};
constexpr uint64_t kilo = 1000, kibi = 1024;
constexpr Suffix suffixes[] = {
    {"", 1},
    {"k", kilo},
    {"M", kilo* kilo},
    {"G", kilo* kilo* kilo},
    {"T", kilo* kilo* kilo* kilo},
    {"P", kilo* kilo* kilo* kilo* kilo},
    {"E", kilo* kilo* kilo* kilo* kilo* kilo},
    {"Ki", kibi},
    {"Mi", kibi* kibi},
    {"Gi", kibi* kibi* kibi},
    {"Ti", kibi* kibi* kibi* kibi},
    {"Pi", kibi* kibi* kibi* kibi* kibi},
    {"Ei", kibi* kibi* kibi* kibi* kibi* kibi},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes the leading digits and decimal places from the text.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal out;
  size_t digits = 0;
  bool in_places = false;
  while (!text.empty() && (is_digit(text.front()) || (text.front() == '.' && !in_places))) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '.') {
      in_places = true;
      continue;
    }
    if (++digits > max_digits) return std::nullopt;
    out.digits = out.digits * 10 + static_cast<unsigned>(c - '0');
    out.places += in_places ? 1 : 0;
  }
  return digits == 0 ? std::nullopt : std::optional(out);
}

// Returns the exponent of "e3" or "E-2", which is the number of places to add or remove. No value for other
// text.
std::optional<int> exponent(std::string_view text) {
  if (text.size() < 2 || (text.front() != 'e' && text.front() != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool is_negative = text.front() == '-';
  if (is_negative || text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 2 || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  int out = 0;
  for (const char c : text) out = out * 10 + (c - '0');
  return is_negative ? -out : out;
}

// Returns digits / 10^places if it is whole and not too large.
std::optional<uint64_t> whole(Decimal number) {
  for (; number.places > 0; --number.places) {
    if (number.digits % 10 != 0) return std::nullopt;
    number.digits /= 10;
  }
  return number.digits > largest ? std::nullopt : std::optional(static_cast<uint64_t>(number.digits));
}

}  // namespace

std::optional<uint64_t> parse_quantity(std::string_view text) {
  auto number = take_decimal(text);
  if (!number) return std::nullopt;
  if (text == "m") return whole({number->digits, number->places + 3});
  if (const auto power = exponent(text)) {
    if (*power < 0) return whole({number->digits, number->places + static_cast<unsigned>(-*power)});
    for (int i = 0; i < *power; ++i) {
      if (number->digits > largest) return std::nullopt;
      number->digits *= 10;
    }
    return whole(*number);
  }
  const auto* const suffix = std::ranges::find(suffixes, text, &Suffix::text);
  if (suffix == std::end(suffixes)) return std::nullopt;
  return whole({number->digits * suffix->factor, number->places});
}

std::string_view byte_suffix(std::string_view text) {
  for (const Suffix& suffix : suffixes)
    if (suffix.factor > kilo && text.ends_with(suffix.text) && text.size() > suffix.text.size() &&
        (is_digit(text[text.size() - suffix.text.size() - 1]) ||
         text[text.size() - suffix.text.size() - 1] == '.'))
      return suffix.text;
  return "";
}

std::string quantity_of_bytes(uint64_t bytes) {
  constexpr uint64_t mib = kibi * kibi, gib = mib * kibi;
  return bytes % gib == 0 ? fmt::format("{}Gi", bytes / gib) : fmt::format("{}Mi", bytes / mib);
}

}  // namespace carve::kubernetes
