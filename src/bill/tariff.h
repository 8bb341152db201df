// A tariff sets the price of a GPU-hour from a date on, and how many GPU-hour units an hour of each device
// model counts. An hour of an A10 counts 10 units.
//
// Amounts are 64-bit integers that count millionths. A text such as "0.30" is parsed as an exact decimal
// number, so that no binary fraction occurs between a tariff and an invoice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::bill {

using Ns = int64_t;
inline constexpr Ns second_ns = 1'000'000'000;

// A decimal number with six decimals: GPU-hours, GPU-hour units, money.
struct Millionths {
  int64_t count = 0;

  friend constexpr bool operator==(Millionths, Millionths) = default;
  friend constexpr auto operator<=>(Millionths, Millionths) = default;
};
inline constexpr int64_t millionths_per_one = 1'000'000;

// The limits keep an exact product of time, units, price and ratio within 256 bits (invoice.cc).
inline constexpr Millionths max_units{1'000'000 * millionths_per_one};      // For one device model.
inline constexpr Millionths max_price{1'000'000'000 * millionths_per_one};  // For one GPU-hour.
inline constexpr Ns max_granularity_ns = 86'400 * second_ns;                // Also the limit for the minimum.

// Parses numbers such as "10", "0.30", "2.500000": not negative, at most six decimals, at most `max`. `what`
// names the number in the failure (invalid_argument).
Outcome<Millionths> parse_millionths(std::string_view what, std::string_view text, Millionths max);

// Formats the amount with 0 to 6 decimals, rounded half to even.
std::string text(__int128 millionths, unsigned decimals = 6);
inline std::string text(Millionths number, unsigned decimals = 6) {
  return text(__int128{number.count}, decimals);
}

struct Tariff {
  std::string currency;  // Three capital letters.
  Ns from = 0;           // UTC, since 1970; valid until the next tariff starts.
  std::map<std::string, Millionths, std::less<>> units;  // By the driver's name of the model.
  Millionths price;                                      // Per GPU-hour.
  Ns granularity = second_ns;                            // Billed durations are rounded up to a multiple.
  Ns minimum = 0;                                        // Minimum billed duration of a slice.

  friend bool operator==(const Tariff&, const Tariff&) = default;
};

// Returns the units that Carve ships, such as 10 for an A10.
const std::map<std::string, Millionths, std::less<>>& shipped_units();

// Tariffs of one currency, ordered by date.
class Tariffs {
 public:
  // Returns the tariffs. Fails with the first violated rule (invalid_argument): two start at the same time,
  // the currencies differ, or a number is out of range.
  static Outcome<Tariffs> from(std::vector<Tariff>);

  // Returns the tariff that is valid at the time (UTC), or null before the first one.
  const Tariff* at(Ns moment) const;
  const std::vector<Tariff>& all() const { return tariffs_; }

 private:
  std::vector<Tariff> tariffs_;
};

}  // namespace carve::bill
