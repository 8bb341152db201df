// The agent's log on stderr: changes and failures, one line each. Successful requests are logged at `debug`.
// The events of slices are also in the API (GET /v1/events). A line
// from outside stays one line (core/escaped.h).
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace carve::os::log {

// Sets the level: "error", "warning", "info", "debug"; false for any other name.
bool set_level(std::string_view name);

void write_debug(const std::string&);
void write_info(const std::string&);
void write_warning(const std::string&);
void write_error(const std::string&);

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

}  // namespace carve::os::log
