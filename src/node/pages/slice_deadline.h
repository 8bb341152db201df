// When a slice with a time limit gets SIGTERM, and when it ends. The decision is pure; node/life/ending.h carries
// it out.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "os/clock.h"

namespace carve::node {

// Times are those of CLOCK_MONOTONIC, which continues when the agent is restarted.
struct SliceDeadline {
  uint64_t limit_seconds = 0;  // As requested, for messages.
  uint64_t grace_seconds = 0;  // Between SIGTERM and the end.
  int64_t at_ns = 0;           // SIGTERM is sent then.
  int64_t warned_ns = 0;       // When it was sent; 0 if it was not.

  friend bool operator==(const SliceDeadline&, const SliceDeadline&) = default;
};

enum class DeadlineStep : uint8_t {
  wait,  // Nothing is to be done for `wait_ns`.
  warn,  // SIGTERM is to be sent.
  end,   // The slice is to be ended.
};

struct NextDeadlineStep {
  DeadlineStep step = DeadlineStep::wait;
  int64_t wait_ns = 0;
};

// Returns what is to be done now. The grace time begins with SIGTERM, even if that was sent late, because the
// agent did not run at the limit.
constexpr NextDeadlineStep next_step(const SliceDeadline& deadline, int64_t now_ns) {
  if (deadline.warned_ns == 0 && now_ns >= deadline.at_ns) return {DeadlineStep::warn, 0};
  const int64_t next_ns =
      deadline.warned_ns == 0
          ? deadline.at_ns
          : deadline.warned_ns + static_cast<int64_t>(deadline.grace_seconds) * os::second;
  if (now_ns >= next_ns) return {DeadlineStep::end, 0};
  return {DeadlineStep::wait, next_ns - now_ns};
}

// Returns the time in its largest whole unit, as users write it: "90s", "2h".
inline std::string text_of_seconds(uint64_t seconds) {
  for (const auto& [unit, size] : {std::pair{'d', 86400U}, std::pair{'h', 3600U}, std::pair{'m', 60U}})
    if (seconds >= size && seconds % size == 0) return fmt::format("{}{}", seconds / size, unit);
  return fmt::format("{}s", seconds);
}

}  // namespace carve::node
