#include "bill/tariff.h"

#include <algorithm>

#include "base/decimal.h"
#include "core/invariant.h"
#include "core/utc.h"

namespace carve::bill {
namespace {

constexpr unsigned max_decimals = 6;

Outcome<void> check(const Tariff& tariff) {
  if (tariff.currency.size() != 3 ||
      !std::ranges::all_of(tariff.currency, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return failure(FailureKind::invalid_argument, "currency '{}': must be three capital letters, such as EUR",
                   tariff.currency.substr(0, 40));
  if (tariff.from < 0) return failure(FailureKind::invalid_argument, "from: must not be before 1970");
  if (tariff.price.count < 0 || tariff.price > max_price)
    return failure(FailureKind::invalid_argument, "pricePerGpuHour {}: must be 0 to {}", text(tariff.price),
                   text(max_price, 0));
  for (const auto& [model, units] : tariff.units)
    if (model.empty() || units.count <= 0 || units > max_units)
      return failure(FailureKind::invalid_argument,
                     "gpuHourUnits {} of model '{}': must be above 0 and at most {}", text(units),
                     model.substr(0, 80), text(max_units, 0));
  if (tariff.granularity <= 0 || tariff.granularity > max_granularity_ns)
    return failure(FailureKind::invalid_argument, "granularity: must be above 0 and at most {} s",
                   max_granularity_ns / second_ns);
  if (tariff.minimum < 0 || tariff.minimum > max_granularity_ns)
    return failure(FailureKind::invalid_argument, "minimum: must be 0 to {} s",
                   max_granularity_ns / second_ns);
  return {};
}

}  // namespace

Outcome<Millionths> parse_millionths(std::string_view what, std::string_view given, Millionths max) {
  invariant(max.count >= 0, "a limit must not be negative");
  const auto decimal = leading_decimal(given);
  if (!decimal || decimal->length != given.size() || decimal->decimals > max_decimals)
    return failure(FailureKind::invalid_argument,
                   "{} '{}': must be a decimal number with at most {} decimals, such as 0.30", what,
                   given.substr(0, 40), max_decimals);
  uint64_t scaled = decimal->digits;
  bool overflow = false;
  for (unsigned i = decimal->decimals; i < max_decimals; ++i)
    overflow |= __builtin_mul_overflow(scaled, uint64_t{10}, &scaled);
  if (overflow || scaled > static_cast<uint64_t>(max.count))
    return failure(FailureKind::invalid_argument, "{} '{}': must be at most {}", what, given.substr(0, 40),
                   text(max, 0));
  return Millionths{static_cast<int64_t>(scaled)};
}

std::string text(__int128 millionths, unsigned decimals) {
  decimals = std::min(decimals, max_decimals);
  int64_t step = 1, one = 1;
  for (unsigned i = decimals; i < max_decimals; ++i) step *= 10;
  for (unsigned i = 0; i < decimals; ++i) one *= 10;
  const bool negative = millionths < 0;
  const __int128 size = negative ? -millionths : millionths;
  __int128 rounded = size / step;
  const __int128 rest = (size % step) * 2;
  if (rest > step || (rest == step && rounded % 2 != 0)) ++rounded;
  const char* sign = negative && rounded != 0 ? "-" : "";
  if (decimals == 0) return fmt::format("{}{}", sign, rounded);
  return fmt::format("{}{}.{:0{}}", sign, rounded / one, static_cast<int64_t>(rounded % one), decimals);
}

const std::map<std::string, Millionths, std::less<>>& shipped_units() {
  static const std::map<std::string, Millionths, std::less<>> units{
      {"NVIDIA A10", {10 * millionths_per_one}},
  };
  return units;
}

Outcome<Tariffs> Tariffs::from(std::vector<Tariff> given) {
  for (const Tariff& tariff : given)
    if (const auto good = check(tariff); !good) return tl::unexpected(good.error());
  std::ranges::stable_sort(given, {}, &Tariff::from);
  for (size_t i = 1; i < given.size(); ++i) {
    if (given[i].from == given[i - 1].from)
      return failure(FailureKind::invalid_argument, "two tariffs start at {}; change the date of one of them",
                     text_utc(given[i].from));
    if (given[i].currency != given[i - 1].currency)
      return failure(FailureKind::invalid_argument,
                     "tariffs in {} and in {}: an invoice has one currency; use the same one in all tariffs",
                     given[i - 1].currency, given[i].currency);
  }
  Tariffs tariffs;
  tariffs.tariffs_ = std::move(given);
  return tariffs;
}

const Tariff* Tariffs::at(Ns moment) const {
  const auto next = std::ranges::upper_bound(tariffs_, moment, {}, &Tariff::from);
  if (next == tariffs_.begin()) return nullptr;
  const Tariff& found = *std::prev(next);
  invariant(found.from <= moment && (next == tariffs_.end() || moment < next->from),
            "the tariffs are ordered by their dates");
  return &found;
}

}  // namespace carve::bill
