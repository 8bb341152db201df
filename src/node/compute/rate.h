// The growth rate of a sum, computed from several samples a second that are kept for one minute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "share/entitlement.h"

namespace carve::node {

class Rate {
 public:
  // Samples must arrive in the order of their times.
  void sample(share::Ns now, share::Ns sum) {
    samples_.emplace_back(now, sum);
    // Keep one sample older than the longest window, so that this window is complete.
    while (samples_.size() > 2 && samples_[1].first <= now - max_window) samples_.pop_front();
  }

  // Returns the growth over the last `window` (at most `max_window`) as a part of that time, in basis points.
  // Uses a shorter window if the samples do not reach back that far. The window ends with the last sample and
  // begins with the sample nearest to its start. Returns no value before the second sample.
  std::optional<uint32_t> part(share::Ns window) const {
    if (samples_.size() < 2) return std::nullopt;
    const auto& [to, last] = samples_.back();
    const auto off = [&](const auto& l) { return std::abs(to - window - l.first); };
    const auto& [from, first] = *std::ranges::min_element(samples_.begin(), samples_.end() - 1, {}, off);
    if (to <= from) return std::nullopt;
    return static_cast<uint32_t>(std::clamp<share::Ns>((last - first) * 10000 / (to - from), 0, 10000));
  }

  static constexpr share::Ns max_window = 60 * share::second;

 private:
  std::deque<std::pair<share::Ns, share::Ns>> samples_;  // Time and sum.
};

}  // namespace carve::node
