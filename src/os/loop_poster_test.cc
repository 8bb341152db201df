#include "os/loop_poster.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "os/clock.h"
#include "os/loop.h"
#include "os/wakeup.h"

namespace carve::os {
namespace {

using testing::ElementsAre;

TEST(LoopPoster, runs_the_calls_of_each_thread_in_order_in_the_loops_thread) {
  constexpr int threads = 4, calls = 500;
  Loop loop;
  const auto loop_thread = std::this_thread::get_id();
  std::vector<std::vector<int>> seen(threads);
  int total = 0;
  std::vector<std::thread> posting;
  for (int t = 0; t < threads; ++t)
    posting.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i)
        loop.post([&, t, i] {
          EXPECT_EQ(std::this_thread::get_id(), loop_thread);
          seen[static_cast<size_t>(t)].push_back(i);
          if (++total == threads * calls) loop.stop();
        });
    });
  loop.run();
  for (std::thread& thread : posting) thread.join();
  for (const std::vector<int>& of_thread : seen) {
    ASSERT_EQ(of_thread.size(), static_cast<size_t>(calls));
    for (int i = 0; i < calls; ++i) EXPECT_EQ(of_thread[static_cast<size_t>(i)], i);
  }
}

TEST(LoopPoster, runs_timers_between_calls_that_post_the_next_call) {
  Loop loop;
  int posted = 0;
  std::function<void()> again = [&] {
    ++posted;
    loop.post(again);
  };
  loop.post(again);
  loop.after(5 * millisecond, [&] { loop.stop(); });
  loop.run();
  EXPECT_GT(posted, 1);
}

TEST(LoopPoster, runs_a_call_that_was_posted_between_two_runs_in_the_second_run) {
  Loop loop;
  std::vector<int> seen;
  loop.post([&] {
    seen.push_back(1);
    loop.stop();
  });
  loop.run();
  loop.post([&] { seen.push_back(2); });
  EXPECT_THAT(seen, ElementsAre(1));
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST(LoopPoster, outlives_its_loop_and_drops_later_calls) {
  const auto held = std::make_shared<int>();
  std::optional<Loop> loop(std::in_place);
  const LoopPoster poster = loop->poster();
  poster.post([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
  loop.reset();
  EXPECT_EQ(held.use_count(), 1);
  poster.post([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LoopPoster, can_be_used_by_threads_while_the_loop_ends) {
  for (int i = 0; i < 50; ++i) {
    std::optional<Loop> loop(std::in_place);
    std::thread posting([poster = loop->poster()] {
      for (int n = 0; n < 100; ++n) poster.post([] {});
    });
    loop.reset();
    posting.join();
  }
}

TEST(Wakeup, is_set_until_it_is_taken) {
  const Wakeup wakeup;
  EXPECT_FALSE(wakeup.take());
  std::thread([&] {
    wakeup.set();
    wakeup.set();
  }).join();
  EXPECT_TRUE(wakeup.take());
  EXPECT_FALSE(wakeup.take());
}

}  // namespace
}  // namespace carve::os
