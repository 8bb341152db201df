#include "core/utc.h"

#include <chrono>
#include <optional>

namespace carve {
namespace {

constexpr int64_t ns_per_second = 1'000'000'000;
constexpr int min_year = 1970, max_year = 2199;

// Parses exactly `digits` digits from the front. Returns no value if there are fewer.
std::optional<int> number(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int out = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return out;
}

bool skip(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int64_t> day_of(std::string_view& text) {
  const auto year = number(text, 4);
  if (!year || !skip(text, '-')) return std::nullopt;
  const auto month = number(text, 2);
  if (!month || !skip(text, '-')) return std::nullopt;
  const auto day = number(text, 2);
  if (!day || *year < min_year || *year > max_year) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)});
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

std::optional<int64_t> seconds_of(std::string_view& text) {
  if (text.empty()) return 0;
  if (!skip(text, 'T')) return std::nullopt;
  const auto hour = number(text, 2);
  if (!hour || *hour > 23 || !skip(text, ':')) return std::nullopt;
  const auto minute = number(text, 2);
  if (!minute || *minute > 59 || !skip(text, ':')) return std::nullopt;
  const auto second = number(text, 2);
  if (!second || *second > 59 || !skip(text, 'Z')) return std::nullopt;
  return *hour * 3600 + *minute * 60 + *second;
}

}  // namespace

Outcome<int64_t> parse_utc(std::string_view what, std::string_view text) {
  std::string_view rest = text;
  if (const auto day = day_of(rest))
    if (const auto seconds = seconds_of(rest); seconds && rest.empty())
      return (*day * 86'400 + *seconds) * ns_per_second;
  return failure(FailureKind::invalid_argument,
                 "{} '{}': must be a date or a time in UTC, such as 2026-11-01 or 2026-11-01T08:30:00Z", what,
                 text.substr(0, 40));
}

UtcMonth month_of(int64_t utc_ns) {
  namespace chrono = std::chrono;
  const chrono::year_month_day date(
      chrono::floor<chrono::days>(chrono::sys_time<chrono::nanoseconds>(chrono::nanoseconds(utc_ns))));
  const chrono::year_month month(date.year(), date.month());
  const auto begin = [](chrono::year_month m) {
    return chrono::nanoseconds(chrono::sys_days(m / 1).time_since_epoch()).count();
  };
  return {.from_ns = begin(month), .to_ns = begin(month + chrono::months(1))};
}

std::string text_utc(int64_t utc_ns) {
  namespace chrono = std::chrono;
  const auto moment =
      chrono::floor<chrono::seconds>(chrono::sys_time<chrono::nanoseconds>(chrono::nanoseconds(utc_ns)));
  const auto day = chrono::floor<chrono::days>(moment);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(moment - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

}  // namespace carve
