#include "cli/amounts.h"

namespace carve::cli {

std::string in_cents(const std::string& amount) {
  const size_t point = amount.find('.');
  if (point == std::string::npos || amount.size() - point != 7) return amount;
  std::string digits = amount.substr(0, point) + amount.substr(point + 1, 2);
  const std::string rest = amount.substr(point + 3);
  const bool odd = (digits.back() - '0') % 2 != 0;
  if (rest > "5000" || (rest == "5000" && odd)) {
    size_t i = digits.size();
    while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
    if (i > 0)
      ++digits[i - 1];
    else
      digits.insert(digits.begin(), '1');
  }
  return digits.insert(digits.size() - 2, 1, '.');
}

}  // namespace carve::cli
