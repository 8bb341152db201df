// Amounts of money and of GPU-hours for tables.
#pragma once

#include <string>

namespace carve::cli {

// Returns a number with six decimals, rounded half to even to two decimals, or to four if it is below 1:
// "3.603889" is "3.60", "0.003333" is "0.0033", "0.000000" is "0.00". Any other text is returned unchanged.
std::string shown_amount(const std::string& amount);

}  // namespace carve::cli
