#include "node/compute/interference.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace carve::node {
namespace {

using share::ms;
using share::Ns;
using share::second;

TEST(Interference, slowdown_is_the_time_of_work_here_over_the_time_alone) {
  Interference i;
  EXPECT_EQ(i.slowdown_bp(100 * second), 0u) << "no work";
  i.add(100 * second, 2 * second, 1 * second, 3 * second);
  EXPECT_EQ(i.slowdown_bp(100 * second), 30'000u);
  i.add(101 * second, 2 * second, 0, 0);
  EXPECT_EQ(i.slowdown_bp(101 * second), 20'000u);
}

TEST(Interference, slowdown_of_a_slice_that_only_waits_is_limited) {
  Interference i;
  i.add(100 * second, 0, 1 * second, 0);
  EXPECT_EQ(i.slowdown_bp(100 * second), 0u);
  i.add(101 * second, 1, 10 * second, 0);
  EXPECT_EQ(i.slowdown_bp(101 * second), Interference::max_slowdown_bp);
}

TEST(Interference, lists_the_holders_of_the_last_minute) {
  Interference i;
  i.add_wait_for(10 * second, 7, 500 * ms);
  i.add_wait_for(40 * second, 8, 200 * ms);
  i.add_wait_for(41 * second, 8, 400 * ms);
  i.add_wait_for(42 * second, 9, 0);
  auto waits = i.waits(45 * second);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].slice, 8u);
  EXPECT_EQ(waits[0].waiting_ns, 600u * ms);
  EXPECT_EQ(waits[1].slice, 7u);
  i.add(80 * second, 1 * second, 0, 0);
  waits = i.waits(80 * second);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].slice, 8u);
  EXPECT_TRUE(i.waits(200 * second).empty()) << "nothing was added for more than a minute";
  EXPECT_EQ(i.slowdown_bp(200 * second), 0u);
}

// Compares with sums over every single addition. The window begins at the begin of a sum of 5 s.
TEST(Interference, agrees_with_a_simple_model) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Interference i;
    struct Added {
      Ns at;
      uint64_t holder;
      Ns time;
    };
    std::vector<Added> all;
    Ns now = 1'000 * second;
    for (int step = 0; step < 400; ++step) {
      now += static_cast<Ns>(random() % 1'500) * ms;
      all.push_back({now, random() % 5 + 1, static_cast<Ns>(random() % 100 + 1) * ms});
      i.add_wait_for(now, all.back().holder, all.back().time);
      std::map<uint64_t, uint64_t> expected;
      for (const Added& one : all)
        if (one.at - one.at % Interference::bucket > now - Interference::window - Interference::bucket)
          expected[one.holder] += static_cast<uint64_t>(one.time);
      std::map<uint64_t, uint64_t> got;
      for (const WaitFor& wait : i.waits(now)) got[wait.slice] = wait.waiting_ns;
      ASSERT_EQ(got, expected) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace carve::node
