#include "controller/runtime/program_ends.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>
#include <vector>

#include "os/clock.h"

namespace carve::controller {
namespace {

using Woken = ProgramEnds::Woken;

constexpr int64_t very_long_ns = 3600 * os::second;

// A process that does nothing until it is killed.
struct Sleeper {
  Sleeper() : pid(fork()) {
    if (pid == 0)
      for (;;) pause();
    id = os::stat_of(pid)->id;
  }
  ~Sleeper() { end(); }
  void end() {
    if (pid == 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }
  pid_t pid;
  os::ProcessId id;
};

TEST(ProgramEnds, end_the_wait_when_a_watched_process_ends) {
  ProgramEnds ends;
  Sleeper a, b;
  EXPECT_FALSE(ends.has_ended("a", a.id));
  EXPECT_FALSE(ends.has_ended("b", b.id));
  EXPECT_EQ(ends.wait(0), Woken::at_interval);
  a.end();
  EXPECT_EQ(ends.wait(very_long_ns), Woken::by_end);
  EXPECT_TRUE(ends.has_ended("a", a.id));
  EXPECT_FALSE(ends.has_ended("b", b.id));
  EXPECT_EQ(ends.watched(), 1u);
  EXPECT_EQ(ends.wait(0), Woken::at_interval);  // An end is reported once.
}

TEST(ProgramEnds, include_a_process_that_has_not_been_waited_for) {
  ProgramEnds ends;
  Sleeper a;
  ends.has_ended("a", a.id);
  kill(a.pid, SIGKILL);  // A stopped supervisor does not wait for its child.
  EXPECT_EQ(ends.wait(very_long_ns), Woken::by_end);
  EXPECT_TRUE(ends.has_ended("a", a.id));
}

TEST(ProgramEnds, end_the_wait_when_another_thread_calls) {
  ProgramEnds ends;
  std::thread caller([&] { ends.wake(); });
  EXPECT_EQ(ends.wait(very_long_ns), Woken::by_call);
  caller.join();
  EXPECT_EQ(ends.wait(0), Woken::at_interval);
  for (int i = 0; i < 3; ++i) ends.wake();  // Called before the wait begins.
  EXPECT_EQ(ends.wait(very_long_ns), Woken::by_call);
  EXPECT_EQ(ends.wait(0), Woken::at_interval);
}

TEST(ProgramEnds, do_not_include_the_next_process_of_a_program) {
  ProgramEnds ends;
  Sleeper first, second;
  ends.has_ended("a", first.id);
  first.end();
  EXPECT_EQ(ends.wait(very_long_ns), Woken::by_end);
  EXPECT_FALSE(ends.has_ended("a", second.id));
  EXPECT_EQ(ends.watched(), 1u);
  ends.forget("a");
  EXPECT_EQ(ends.watched(), 0u);
  second.end();
  EXPECT_EQ(ends.wait(0), Woken::at_interval);
}

TEST(ProgramEnds, do_not_make_the_loop_spin_if_a_program_ends_repeatedly) {
  EXPECT_TRUE(may_wake(0, 1));
  EXPECT_FALSE(may_wake(1, min_wake_interval_ns));
  EXPECT_TRUE(may_wake(1, 1 + min_wake_interval_ns));
  ProgramEnds ends;
  unsigned woken = 0;
  const int64_t began = os::monotonic_ns();
  for (int i = 0; i < 20; ++i) {
    Sleeper process;
    ends.has_ended("a", process.id);
    process.end();
    woken += ends.wait(0) == Woken::by_end ? 1 : 0;
    EXPECT_TRUE(ends.has_ended("a", process.id));
  }
  EXPECT_LE(woken, 1 + static_cast<unsigned>((os::monotonic_ns() - began) / min_wake_interval_ns));
}

TEST(ProgramEnds, do_not_include_a_forged_process) {
  ProgramEnds ends;
  Sleeper a;
  EXPECT_FALSE(ends.has_ended("a", {.pid = a.pid, .start = a.id.start + 1}));
  EXPECT_FALSE(ends.has_ended("b", {.pid = 0, .start = 1}));
  EXPECT_FALSE(ends.has_ended("c", {.pid = -1, .start = 1}));
  EXPECT_EQ(ends.wait(0), Woken::at_interval);
  EXPECT_FALSE(ends.has_ended("a", {.pid = a.pid, .start = a.id.start + 1}));
  EXPECT_EQ(ends.watched(), 0u);
}

TEST(ProgramEnds, use_at_most_a_quarter_of_the_descriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  ProgramEnds ends;
  Sleeper a;
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(ends.has_ended(std::to_string(i), a.id));
  EXPECT_EQ(ends.watched(), 16u);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace carve::controller
