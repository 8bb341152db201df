#include "cli/amounts.h"

namespace carve::cli {
namespace {

constexpr size_t given_decimals = 6;

// Returns the text with fewer decimals, rounded half to even.
std::string rounded(const std::string& amount, size_t point, size_t decimals) {
  std::string digits = amount.substr(0, point) + amount.substr(point + 1, decimals);
  const std::string rest = amount.substr(point + 1 + decimals);
  const std::string half = "5" + std::string(rest.size() - 1, '0');
  const bool is_odd = (digits.back() - '0') % 2 != 0;
  if (rest > half || (rest == half && is_odd)) {
    size_t i = digits.size();
    while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
    if (i > 0)
      ++digits[i - 1];
    else
      digits.insert(digits.begin(), '1');
  }
  return digits.insert(digits.size() - decimals, 1, '.');
}

}  // namespace

std::string shown_amount(const std::string& amount) {
  const size_t point = amount.find('.');
  if (point == std::string::npos || amount.size() - point != given_decimals + 1) return amount;
  const bool is_zero = amount.find_first_not_of("0.") == std::string::npos;
  const bool is_below_one = amount.compare(0, point, "0") == 0;
  return rounded(amount, point, is_below_one && !is_zero ? 4 : 2);
}

}  // namespace carve::cli
