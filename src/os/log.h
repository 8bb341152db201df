// The agent's log on stderr: changes and failures, one line each. Successful requests are logged at `debug`.
// The events of slices are also in the API (GET /v1/events). Text from outside is kept on one line
// (core/escaped.h).
//
// A line that others can cause has a Cause, which has a quota (core/event_budget.h). For each cause, one line
// per minute reports how many lines were left out. The functions are thread-safe.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/event_budget.h"

namespace carve::os {
class Loop;
}

namespace carve::os::log {

// Sets the level: "error", "warning", "info", "debug". Returns false for any other name.
bool set_level(std::string_view name);

void write_debug(const std::string&);
void write_info(const std::string&);
void write_warning(const std::string&);
void write_error(const std::string&);

// Returns whether the quota of the cause allows another line, and if so, counts the line.
bool may_write(const Cause&);
// Writes a line for each cause whose lines were left out since the last call.
void write_left_out();
// Calls write_left_out() every minute.
void report_left_out(Loop&);

template <class... A>
void debug(fmt::format_string<A...> form, A&&... a) {
  write_debug(fmt::format(form, std::forward<A>(a)...));
}
template <class... A>
void info(fmt::format_string<A...> form, A&&... a) {
  write_info(fmt::format(form, std::forward<A>(a)...));
}
template <class... A>
void warning(fmt::format_string<A...> form, A&&... a) {
  write_warning(fmt::format(form, std::forward<A>(a)...));
}
template <class... A>
void error(fmt::format_string<A...> form, A&&... a) {
  write_error(fmt::format(form, std::forward<A>(a)...));
}

template <class... A>
void info(const Cause& cause, fmt::format_string<A...> form, A&&... a) {
  if (may_write(cause)) write_info(fmt::format(form, std::forward<A>(a)...));
}
template <class... A>
void warning(const Cause& cause, fmt::format_string<A...> form, A&&... a) {
  if (may_write(cause)) write_warning(fmt::format(form, std::forward<A>(a)...));
}
template <class... A>
void error(const Cause& cause, fmt::format_string<A...> form, A&&... a) {
  if (may_write(cause)) write_error(fmt::format(form, std::forward<A>(a)...));
}

}  // namespace carve::os::log
