#include "os/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/escaped.h"

namespace carve::os::log {
namespace {

spdlog::logger& diary() {
  static const auto logger = [] {
    auto made = spdlog::stderr_color_mt("carved");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *logger;
}

}  // namespace

bool set_level(std::string_view name) {
  const struct {
    std::string_view name;
    spdlog::level::level_enum level;
  } levels[] = {{"error", spdlog::level::err},
                {"warning", spdlog::level::warn},
                {"info", spdlog::level::info},
                {"debug", spdlog::level::debug}};
  for (const auto& row : levels) {
    if (row.name != name) continue;
    diary().set_level(row.level);
    return true;
  }
  return false;
}

void write_debug(const std::string& line) { diary().debug("{}", escaped(line)); }
void write_info(const std::string& line) { diary().info("{}", escaped(line)); }
void write_warning(const std::string& line) { diary().warn("{}", escaped(line)); }
void write_error(const std::string& line) { diary().error("{}", escaped(line)); }

}  // namespace carve::os::log
