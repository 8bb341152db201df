#include "base/share.h"

#include <cstdio>

#include "base/decimal.h"

namespace carve {

Result<Share> parse_share(std::string_view input) {
  const auto number = leading_decimal(input);
  if (!number || input.substr(number->length) != "%") return failed("is not a share; try 30% or 12.5%");
  if (number->decimals > 2) return failed("must be a multiple of 0.01%; try 12.5%");
  uint64_t points = number->digits;
  for (unsigned i = number->decimals; i < 2; ++i) {
    if (points > whole_device.basis_points) break;
    points *= 10;
  }
  if (points == 0 || points > whole_device.basis_points) return failed("is not between 0.01% and 100%");
  return Share{static_cast<uint32_t>(points)};
}

ShareText text(Share share) {
  ShareText out{};
  const unsigned whole = share.basis_points / 100, rest = share.basis_points % 100;
  if (rest == 0)
    std::snprintf(out.text, sizeof out.text, "%u%%", whole);
  else if (rest % 10 == 0)
    std::snprintf(out.text, sizeof out.text, "%u.%u%%", whole, rest / 10);
  else
    std::snprintf(out.text, sizeof out.text, "%u.%02u%%", whole, rest);
  return out;
}

}  // namespace carve
