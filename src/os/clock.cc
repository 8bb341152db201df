#include "os/clock.h"

#include <fmt/format.h>

namespace carve::os {

std::string rfc3339(int64_t utc_ns, Decimals decimals) {
  const std::time_t seconds = utc_ns / second;
  std::tm at{};
  gmtime_r(&seconds, &at);
  const std::string date = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", at.tm_year + 1900,
                                       at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec);
  if (decimals == Decimals::milliseconds) return fmt::format("{}.{:03}Z", date, utc_ns / millisecond % 1000);
  return fmt::format("{}.{:09}Z", date, utc_ns % second);
}

}  // namespace carve::os
