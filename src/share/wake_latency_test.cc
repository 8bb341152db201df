#include "share/wake_latency.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::share {
namespace {

TEST(WakeLatency, follows_the_median_and_ignores_rare_late_wakes) {
  WakeLatency latency;
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i)
    latency.add(i % 10 == 0 ? 50 * ms : std::uniform_int_distribution<Ns>(80 * us, 120 * us)(random));
  EXPECT_NEAR(static_cast<double>(latency.median()), 100e3, 25e3);
  for (int i = 0; i < 2000; ++i) latency.add(8 * us);
  EXPECT_NEAR(static_cast<double>(latency.median()), 8e3, 2e3);
}

TEST(WakeLatency, limits_its_lead_times) {
  WakeLatency latency;
  for (int i = 0; i < 1000; ++i) latency.add(-5 * us);
  EXPECT_EQ(latency.timer_lead(), 15 * us);
  for (int i = 0; i < 1000; ++i) latency.add(3 * second);
  EXPECT_EQ(latency.timer_lead(), 200 * us);
}

}  // namespace
}  // namespace carve::share
