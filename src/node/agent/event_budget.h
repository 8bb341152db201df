// Limits the events that a slice's processes can cause, so that a hostile one fills neither the log nor the
// event log. A slice may cause 100 at once and one more each second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace carve::node {

class EventBudget {
 public:
  static constexpr uint64_t burst = 100;
  static constexpr int64_t interval_ns = 1'000'000'000;

  // Returns the number of events that were left out before this one, or no value if this one is left out too.
  // `now_ns`: CLOCK_MONOTONIC.
  std::optional<uint64_t> take(int64_t now_ns) {
    if (filled_ns_ == 0) filled_ns_ = now_ns;
    const int64_t more = std::max<int64_t>(now_ns - filled_ns_, 0) / interval_ns;
    filled_ns_ += more * interval_ns;
    left_ = std::min(burst, left_ + static_cast<uint64_t>(more));
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    --left_;
    const uint64_t before = left_out_;
    left_out_ = 0;
    return before;
  }

 private:
  uint64_t left_ = burst;
  uint64_t left_out_ = 0;
  int64_t filled_ns_ = 0;
};

}  // namespace carve::node
