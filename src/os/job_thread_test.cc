#include "os/job_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "os/clock.h"

namespace carve::os {
namespace {

TEST(JobThread, runs_jobs_in_order_and_their_results_on_the_loop) {
  Loop loop;
  JobThread jobs(loop, 8);
  std::vector<int> order;
  const auto loop_thread = std::this_thread::get_id();
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(jobs.post([&, i]() -> JobThread::Done {
      EXPECT_NE(std::this_thread::get_id(), loop_thread);
      return [&, i] {
        EXPECT_EQ(std::this_thread::get_id(), loop_thread);
        order.push_back(i);
        if (i == 2) loop.stop();
      };
    }));
  EXPECT_FALSE(jobs.is_idle());
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(jobs.is_idle());
}

TEST(JobThread, refuses_a_job_when_too_many_wait) {
  Loop loop;
  std::promise<void> begun, may_end;
  JobThread jobs(loop, 1);
  jobs.post([&]() -> JobThread::Done {
    begun.set_value();
    may_end.get_future().wait();
    return {};
  });
  begun.get_future().wait();
  EXPECT_TRUE(jobs.post([]() -> JobThread::Done { return {}; }));
  EXPECT_FALSE(jobs.post([]() -> JobThread::Done { return {}; }));
  may_end.set_value();
}

TEST(JobThread, drops_results_when_it_ends) {
  Loop loop;
  {
    JobThread jobs(loop, 4);
    jobs.post([]() -> JobThread::Done { return [] { FAIL(); }; });
  }
  loop.after(millisecond, [&] { loop.stop(); });
  loop.run();
}

TEST(Loop, measures_its_longest_turn) {
  Loop loop;
  loop.after(0, [&] {
    EXPECT_NE(loop.turns().began_ns.load(), 0);
    const int64_t until = monotonic_ns() + 5 * millisecond;
    while (monotonic_ns() < until) {}
    loop.stop();
  });
  loop.run();
  EXPECT_GE(loop.turns().longest_ns.load(), 5 * millisecond);
  EXPECT_EQ(loop.turns().began_ns.load(), 0);
}

}  // namespace
}  // namespace carve::os
