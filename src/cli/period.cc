#include "cli/period.h"

#include <algorithm>

#include "cli/terminal.h"
#include "core/utc.h"

namespace carve::cli {
namespace {

constexpr size_t date_bytes = 10;  // "2026-11-01"

// Returns the day that begins at the moment: "2026-11-01"; otherwise the moment.
std::string day_or_moment(const std::string& moment) {
  const std::string_view time = std::string_view(moment).substr(std::min(date_bytes, moment.size()));
  const bool is_midnight = time.find_first_not_of("T0:.Z") == std::string_view::npos;
  return harmless(is_midnight ? moment.substr(0, date_bytes) : moment);
}

// Returns the last day that ends at the moment: "2026-11-30" for "2026-12-01T00:00:00Z"; the moment itself if
// it is not midnight.
std::string last_day_or_moment(const std::string& moment) {
  const std::string day = day_or_moment(moment);
  const auto begin = parse_utc("to", day);
  if (day.size() != date_bytes || !begin) return day;
  return text_utc(*begin - 1).substr(0, date_bytes);
}

}  // namespace

void add_period(CLI::App* verb, Period& period) {
  verb->add_option("--month", period.month, "Month, such as 2026-11 [this month]");
  verb->add_option("--from", period.from,
                   "Start of the period, such as 2026-11-01 or 2026-11-01T08:30:00Z (UTC)");
  verb->add_option(
      "--to", period.to,
      "End of the period: a day (included) or a time (excluded) [the end of the month of --from]");
}

Outcome<Window> window_of(const Period& o) {
  if (!o.month.empty()) {
    if (!o.from.empty() || !o.to.empty())
      return failure(FailureKind::invalid_argument, "--month cannot be used with --from or --to");
    const auto first = parse_utc("--month", o.month + "-01");
    if (o.month.size() != 7 || !first)
      return failure(FailureKind::invalid_argument, "--month '{}': must be a month, such as 2026-11",
                     o.month.substr(0, 80));
    return Window{text_utc(*first), text_utc(month_of(*first).to_ns)};
  }
  Window out{o.from, o.to};
  if (o.to.empty()) return out;
  auto end = parse_utc("--to", o.to);
  if (!end) return tl::unexpected(end.error());
  constexpr int64_t day_ns = int64_t{86'400} * 1'000'000'000;
  if (o.to.size() == date_bytes) {
    *end += day_ns;
    out.to = text_utc(*end);
  }
  if (o.from.empty()) return out;
  const auto begin = parse_utc("--from", o.from);
  if (!begin) return tl::unexpected(begin.error());
  if (*begin >= *end)
    return failure(FailureKind::invalid_argument, "--from {} must be before --to {}", o.from, o.to);
  return out;
}

std::string shown_period(const std::string& from, const std::string& to) {
  return fmt::format("{} to {}", day_or_moment(from), last_day_or_moment(to));
}

}  // namespace carve::cli
