#include "cli/time_span.h"

#include <fmt/format.h>

namespace carve::cli {

Result<std::chrono::seconds, std::string> parse_time_span(const std::string& word, char unit) {
  constexpr size_t max_bytes = 9;
  const size_t digits = word.find_first_not_of("0123456789");
  const std::string suffix = digits == std::string::npos ? std::string(1, unit) : word.substr(digits);
  const int64_t unit_seconds = suffix == "s"   ? 1
                               : suffix == "m" ? 60
                               : suffix == "h" ? 3600
                               : suffix == "d" ? 86'400
                                               : 0;
  if (word.empty() || digits == 0 || word.size() > max_bytes || unit_seconds == 0)
    return tl::unexpected(
        fmt::format("'{}' is not a duration such as 90s, 10m, 2h or 30d", word.substr(0, 80)));
  const std::chrono::seconds span(std::stoll(word) * unit_seconds);
  if (span > max_time_span)
    return tl::unexpected(fmt::format("'{}' exceeds the maximum of {} days", word, max_time_span / day));
  return span;
}

std::string check_time_span(const std::string& word) {
  const auto span = parse_time_span(word);
  return span ? std::string() : span.error();
}

}  // namespace carve::cli
