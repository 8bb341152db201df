#include "node/api/shown_time.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr int64_t s = 1'000'000'000, day = 86'400 * s;

TEST(ShownTime, keeps_the_age_of_a_moment_when_the_clock_is_set) {
  const ledger::Stamp granted{100 * day, "a", 50 * s};
  for (const int64_t step : {int64_t{0}, -day, day, 3650 * day}) {
    const ledger::Stamp now{100 * day + 6 * s + step, "a", 56 * s};
    EXPECT_EQ(now.utc_ns - shown_utc_ns(granted, now), 6 * s) << step;
  }
}

TEST(ShownTime, does_not_change_if_the_clock_is_adjusted_slightly) {
  const ledger::Stamp granted{100 * day, "a", 50 * s};
  EXPECT_EQ(shown_utc_ns(granted, {100 * day + 6 * s + s / 2, "a", 56 * s}), granted.utc_ns);
}

TEST(ShownTime, is_the_recorded_time_for_a_moment_of_another_boot) {
  const ledger::Stamp granted{100 * day, "a", 50 * s};
  EXPECT_EQ(shown_utc_ns(granted, {90 * day, "b", 5 * s}), granted.utc_ns);
}

}  // namespace
}  // namespace carve::node
