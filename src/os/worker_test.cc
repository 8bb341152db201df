#include "os/worker.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "os/clock.h"

namespace carve::os {
namespace {

using testing::ElementsAre;

constexpr int64_t hour = 3600 * second;

TEST(Worker, runs_tasks_in_order_after_the_begin_function) {
  std::vector<int> seen;
  std::promise<void> done;
  const auto here = std::this_thread::get_id();
  Worker worker({.begin = [&] { seen.push_back(0); }});
  for (int i = 1; i <= 100; ++i)
    worker.run([&, i] {
      EXPECT_NE(std::this_thread::get_id(), here);
      seen.push_back(i);
    });
  worker.run([&] { done.set_value(); });
  done.get_future().wait();
  ASSERT_EQ(seen.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(Worker, runs_a_woken_turn_once_after_the_waiting_tasks) {
  std::vector<std::string> seen;
  std::promise<void> may_begin, first_turn, done;
  Worker worker({.turn = [&]() -> int64_t {
    seen.emplace_back("turn");
    if (seen.size() == 1) {
      first_turn.set_value();
      may_begin.get_future().wait();
    } else {
      done.set_value();
    }
    return hour;
  }});
  first_turn.get_future().wait();
  for (const char* name : {"a", "b"}) {
    worker.run([&seen, name] { seen.emplace_back(name); });
    worker.wake();
  }
  EXPECT_EQ(worker.waiting_tasks(), 2u);
  may_begin.set_value();
  done.get_future().wait();
  worker.stop();
  EXPECT_THAT(seen, ElementsAre("turn", "a", "b", "turn"));
}

// A steady stream of tasks must not delay a turn that is due, even though a woken turn waits for the tasks.
TEST(Worker, runs_a_due_turn_before_all_tasks_have_ended) {
  std::atomic<int> turns = 0;
  std::promise<void> done;
  Worker* self = nullptr;
  std::function<void()> again = [&] {
    if (turns < 10) return self->run(again);
    done.set_value();
  };
  Worker worker({.turn = [&]() -> int64_t {
    ++turns;
    return 0;
  }});
  self = &worker;
  worker.run(again);
  done.get_future().wait();
  EXPECT_GE(turns, 10);
}

TEST(Worker, drops_waiting_tasks_at_its_end) {
  std::promise<void> may_end;
  std::atomic<int> ran = 0;
  const auto held = std::make_shared<int>();
  {
    Worker worker;
    std::promise<void> begun;
    worker.run([&] {
      begun.set_value();
      may_end.get_future().wait();
      ++ran;
    });
    begun.get_future().wait();
    worker.run([&ran, held] { ++ran; });
    EXPECT_EQ(worker.waiting_tasks(), 1u);
    worker.stop();
    EXPECT_EQ(held.use_count(), 1);
    worker.run([&ran, held] { ++ran; });
    EXPECT_EQ(worker.waiting_tasks(), 0u);
    may_end.set_value();
  }
  EXPECT_EQ(ran, 1);
}

TEST(Worker, leaves_a_thread_behind_if_it_does_not_return_in_time) {
  const auto may_end = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  {
    Worker worker({.end_patience_ns = 5 * millisecond});
    const auto begun = std::make_shared<std::promise<void>>();
    worker.run([may_end, ended, begun] {
      begun->set_value();
      may_end->get_future().wait();
      ended->set_value();
    });
    begun->get_future().wait();
  }
  may_end->set_value();
  ended->get_future().wait();
}

TEST(Worker, can_be_used_by_threads_while_it_stops) {
  for (int i = 0; i < 50; ++i) {
    Worker worker({.turn = [] { return hour; }, .end_patience_ns = second});
    std::thread other([&] {
      for (int n = 0; n < 20; ++n) {
        worker.run([] {});
        worker.wake();
      }
    });
    worker.stop();
    other.join();
  }
}

}  // namespace
}  // namespace carve::os
