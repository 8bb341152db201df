#include "node/compute/heart.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace carve::node {
namespace {

TEST(LongTurns, are_logged_once_each) {
  LongTurns turns;
  EXPECT_EQ(turns.to_log(0, 5 * long_turn_ns), 0) << "the loop waits";
  EXPECT_EQ(turns.to_log(100, 100 + long_turn_ns - 1), 0);
  EXPECT_EQ(turns.to_log(100, 100 + long_turn_ns), long_turn_ns);
  EXPECT_EQ(turns.to_log(100, 100 + 2 * long_turn_ns), 0) << "this turn was logged";
  EXPECT_EQ(turns.to_log(200, 200 + 3 * long_turn_ns), 3 * long_turn_ns);
}

TEST(Heart, beats_while_the_loop_is_busy_in_one_turn) {
  auto page = std::make_unique<shm::Heartbeat>();
  os::Loop loop;
  {
    const Heart heart(*page, loop.turns());
    const uint64_t first = page->monotonic_ns.load();
    EXPECT_NE(first, 0u) << "the constructor has written a heartbeat";
    loop.after(0, [&] {
      while (page->monotonic_ns.load() == first) usleep(1000);
      loop.stop();
    });
    loop.run();
  }
  const uint64_t last = page->monotonic_ns.load();
  EXPECT_EQ(page->monotonic_ns.load(), last) << "the thread has ended";
  EXPECT_GT(loop.turns().longest_ns.load(), 0);
}

}  // namespace
}  // namespace carve::node
