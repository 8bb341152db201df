#include "node/crash_restart.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr int64_t ms = 1'000'000;

TEST(RestartDelay, doubles_up_to_a_limit_after_which_kubelet_takes_over) {
  RestartDelay delay;
  int64_t sum = 0;
  for (const int64_t expected : {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000}) {
    EXPECT_EQ(delay.after_crash(0), expected * ms);
    sum += expected;
  }
  EXPECT_EQ(sum, 26'300) << "the header states this figure";
  EXPECT_EQ(delay.after_crash(healthy_run_ns - 1), std::nullopt);
}

TEST(RestartDelay, starts_again_after_a_healthy_run) {
  RestartDelay delay;
  for (unsigned i = 0; i < max_crashes; ++i) delay.after_crash(0);
  EXPECT_EQ(delay.after_crash(healthy_run_ns), 100 * ms);
  EXPECT_EQ(delay.after_crash(0), 200 * ms);
}

}  // namespace
}  // namespace carve::node
