#include "os/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "core/escaped.h"
#include "core/event_budget.h"
#include "os/clock.h"
#include "os/loop.h"
#include "os/mutex.h"

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

constexpr int64_t report_interval_ns = 60 * second;

// While `mutex` is held, no other lock is taken.
struct Quotas {
  Mutex mutex;
  EventBudgets budgets GUARDED_BY(mutex);
  int64_t reported_ns GUARDED_BY(mutex) = monotonic_ns();
};

Quotas& quotas() {
  static Quotas all;
  return all;
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

bool may_write(const Cause& cause) {
  Quotas& all = quotas();
  const MutexLock lock(all.mutex);
  return all.budgets.take(cause, monotonic_ns());
}

void write_left_out() {
  const int64_t now_ns = monotonic_ns();
  std::vector<EventBudgets::LeftOut> left_out;
  int64_t since_ns = 0;
  {
    Quotas& all = quotas();
    const MutexLock lock(all.mutex);
    left_out = all.budgets.take_left_out(now_ns);
    since_ns = std::exchange(all.reported_ns, now_ns);
  }
  for (const auto& [who, lines] : left_out)
    warning("{}: {} more line{} in the last {} s {} not logged", who, lines, lines == 1 ? "" : "s",
            (now_ns - since_ns + second - 1) / second, lines == 1 ? "was" : "were");
}

void report_left_out(Loop& loop) { loop.every(report_interval_ns, write_left_out); }

}  // namespace carve::os::log
