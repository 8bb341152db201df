// Limits the events and log lines that others cause, so that no slice, user or account fills a log. Times are
// CLOCK_MONOTONIC in ns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace carve {

// Admits a burst of events, and then one more in each interval.
class EventBudget {
 public:
  static constexpr uint64_t default_burst = 100;
  static constexpr int64_t default_interval_ns = 1'000'000'000;

  EventBudget() = default;
  EventBudget(uint64_t burst, int64_t interval_ns) : burst_(burst), interval_ns_(interval_ns) {}

  // Returns the number of events that were dropped before this one, or no value if this one is dropped too.
  std::optional<uint64_t> take(int64_t now_ns) {
    if (filled_ns_ == 0) filled_ns_ = now_ns;
    left_ = left(now_ns);
    filled_ns_ += intervals(now_ns) * interval_ns_;
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --left_;
    const uint64_t before = left_out_;
    left_out_ = 0;
    return before;
  }
  // Returns whether a complete burst is available, as in a new budget.
  bool is_full(int64_t now_ns) const { return left(now_ns) == burst_; }

 private:
  int64_t intervals(int64_t now_ns) const { return std::max<int64_t>(now_ns - filled_ns_, 0) / interval_ns_; }
  uint64_t left(int64_t now_ns) const {
    return std::min(burst_, left_ + static_cast<uint64_t>(intervals(now_ns)));
  }

  uint64_t burst_ = default_burst;
  int64_t interval_ns_ = default_interval_ns;
  uint64_t left_ = burst_;
  uint64_t left_out_ = 0;
  int64_t filled_ns_ = 0;
};

// The cause of a log line.
struct Cause {
  std::string who;           // "uid 1000", "account research".
  bool has_reserve = false;  // True for root, the program's own user and operators.
};

// The budgets for all causes of lines in one log. Each cause has its own budget. In addition, all causes
// without a reserve share a budget that is four times as large.
class EventBudgets {
 public:
  static constexpr uint64_t burst = 1000;  // Per cause. Enough to grant and start 256 replicas.
  static constexpr int64_t interval_ns = 1'000'000'000;
  static constexpr int causes_at_once = 4;   // Number of causes that may use their whole budgets at once.
  static constexpr size_t max_causes = 250;  // Causes without a reserve. Further ones share `others`.
  static constexpr const char* others = "others";

  struct LeftOut {
    std::string who;
    uint64_t events;

    friend bool operator==(const LeftOut&, const LeftOut&) = default;
  };

  // Returns whether the cause may have another event.
  bool take(const Cause&, int64_t now_ns);
  // Returns how many events of each cause were dropped since the last call.
  std::vector<LeftOut> take_left_out(int64_t now_ns);

 private:
  struct Budget {
    EventBudget budget{burst, interval_ns};
    uint64_t left_out = 0;
  };
  std::map<std::string, Budget> budgets_;  // By cause.
  EventBudget shared_{burst * causes_at_once, interval_ns / causes_at_once};
};

}  // namespace carve
