#include "os/workers.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "os/clock.h"

namespace carve::os {
namespace {

using testing::ElementsAre;

struct Work : testing::Test {
  Loop loop;
  std::vector<std::string> done;

  // Runs the loop until the condition holds.
  void run_until(const std::function<bool()>& holds) {
    const auto is_asked = std::make_shared<bool>(true);  // Shared, because the loop keeps its timers.
    loop.every(millisecond, [this, holds, is_asked] {
      if (*is_asked && holds()) loop.stop();
    });
    loop.run();
    *is_asked = false;
  }
  std::function<Workers::Act()> adds(const std::string& name) {
    return [this, name]() -> Workers::Act { return [this, name] { done.push_back(name); }; };
  }
};

TEST_F(Work, runs_in_a_thread_and_delivers_its_result_on_the_loop) {
  Workers workers(loop);
  const auto loop_thread = std::this_thread::get_id();
  workers.run(
      "a",
      [&]() -> Workers::Act {
        EXPECT_NE(std::this_thread::get_id(), loop_thread);
        return [&] {
          EXPECT_EQ(std::this_thread::get_id(), loop_thread);
          done.push_back("a");
        };
      },
      nullptr);
  EXPECT_FALSE(workers.is_idle());
  run_until([&] { return workers.is_idle(); });
  EXPECT_THAT(done, ElementsAre("a"));
}

TEST_F(Work, results_are_dropped_when_the_workers_are_destroyed) {
  {
    Workers workers(loop);
    workers.run("a", adds("never"), nullptr);
  }
  bool is_over = false;
  loop.after(millisecond, [&] { is_over = true; });
  run_until([&] { return is_over; });
  EXPECT_THAT(done, testing::IsEmpty());
}

TEST_F(Work, of_one_caller_runs_one_task_after_the_other) {
  Workers workers(loop);
  std::promise<void> go;
  const auto wait = [&, gone = go.get_future().share()]() -> Workers::Act {
    gone.wait();
    return [this] { done.push_back("first"); };
  };
  EXPECT_TRUE(workers.run("a", wait, nullptr));
  EXPECT_TRUE(workers.run("a", adds("second"), nullptr));
  EXPECT_EQ(workers.running(), 1u);
  EXPECT_TRUE(workers.run("b", adds("other"), nullptr));
  run_until([&] { return done.size() == 1; });
  EXPECT_THAT(done, ElementsAre("other"));
  go.set_value();
  run_until([&] { return done.size() == 3; });
  EXPECT_THAT(done, ElementsAre("other", "first", "second"));
}

TEST_F(Work, of_one_caller_has_a_limit_of_waiting_tasks) {
  Workers workers(loop);
  std::promise<void> go;
  const auto wait = [gone = go.get_future().share()]() -> Workers::Act {
    gone.wait();
    return nullptr;
  };
  size_t taken = 0;
  while (taken < 1000 && workers.run("a", wait, nullptr)) ++taken;
  EXPECT_EQ(taken, Workers::max_waiting_of_key + 1);
  EXPECT_TRUE(workers.run("b", adds("other"), nullptr)) << "another caller is not affected";
  go.set_value();
  run_until([&] { return workers.running() == 0; });
}

TEST_F(Work, that_does_not_end_is_late_and_blocks_only_its_caller) {
  auto go = std::make_shared<std::promise<void>>();
  {
    Workers workers(loop, 20 * millisecond);
    std::atomic<bool> ended{false};
    const auto wait = [&ended, gone = go->get_future().share()]() -> Workers::Act {
      gone.wait();
      ended = true;
      return nullptr;
    };
    workers.run("a", wait, [this] { done.push_back("late"); });
    workers.run("a", adds("never"), [this] { done.push_back("late too"); });
    run_until([&] { return done.size() == 2; });
    EXPECT_THAT(done, testing::UnorderedElementsAre("late", "late too"));
    EXPECT_EQ(workers.running(), 0u) << "the destructor does not wait for the thread";
    workers.run("b", adds("other"), nullptr);
    run_until([&] { return done.size() == 3; });
    EXPECT_EQ(done.back(), "other");
    go->set_value();
    run_until([&] { return ended.load(); });
    workers.run("a", adds("again"), nullptr);
    run_until([&] { return done.back() == "again"; });
  }
}

// Limits the number of processes and threads of this process's user. Root has no limit.
void limit_threads(rlim_t most) {
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = std::min(most, limit.rlim_max);
  setrlimit(RLIMIT_NPROC, &limit);
}

// Ends this process with status 0 if a task waits while no thread can be created and runs once one can be.
[[noreturn]] void run_without_room() {
  if (geteuid() == 0 && setuid(65534) != 0) _exit(1);
  Loop loop;
  Workers workers(loop, Workers::without_limit_ns);
  limit_threads(0);
  if (!workers.run(
          "a", [&]() -> Workers::Act { return [&] { loop.stop(); }; }, nullptr))
    _exit(2);
  if (workers.running() != 0 || workers.is_idle()) _exit(3);
  limit_threads(RLIM_INFINITY);
  loop.run();
  _exit(0);
}

TEST(WorkersDeathTest, a_task_waits_while_no_thread_can_be_created) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_room(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace carve::os
