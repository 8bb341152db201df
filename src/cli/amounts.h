// Amounts of money and of GPU-hours as tables show them.
#pragma once

#include <string>

namespace carve::cli {

// Returns a decimal text of six decimals with two, rounded half to even: "3.603889" is "3.60". A text of
// another form is returned as it is.
std::string in_cents(const std::string& amount);

}  // namespace carve::cli
