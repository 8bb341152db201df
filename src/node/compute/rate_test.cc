#include "node/compute/rate.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

using share::ms, share::second;

TEST(Rate, is_unknown_before_the_second_sample) {
  Rate g;
  EXPECT_EQ(g.part(second), std::nullopt);
  g.sample(5 * second, 77);
  EXPECT_EQ(g.part(second), std::nullopt);
  g.sample(5 * second + 250 * ms, 77 + 125 * ms);
  EXPECT_EQ(g.part(second), 5000u) << "over the time that has samples";
}

// Samples 70 s without growth, then 5 s at half the rate, then 1 s at the full rate.
TEST(Rate, does_not_depend_on_the_number_of_samples) {
  for (const share::Ns every : {40 * ms, 250 * ms, 500 * ms}) {
    Rate g;
    share::Ns sum = 0;
    for (share::Ns now = 0; now <= 76 * second; now += every) {
      if (now > 70 * second) sum += now <= 75 * second ? every / 2 : every;
      g.sample(now, sum);
    }
    EXPECT_NEAR(*g.part(second), 10000, 1) << every;
    EXPECT_NEAR(*g.part(60 * second), 10000 * 3.5 / 60, 10000 * 0.5 / 60) << every;
  }
}

TEST(Rate, uses_the_nearest_window_if_samples_are_late) {
  Rate g;
  for (const share::Ns at : {0, 240, 510, 745, 1010, 1250})
    g.sample(at * ms, at < 1010 ? 0 : (at - 745) * ms);
  EXPECT_EQ(g.part(second), static_cast<uint32_t>((1250 - 745) * 10000 / (1250 - 240)));
}

TEST(Rate, is_at_most_the_elapsed_time) {
  Rate g;
  g.sample(0, 0);
  g.sample(second, 3 * second);
  EXPECT_EQ(g.part(second), 10000u);
}

}  // namespace
}  // namespace carve::node
