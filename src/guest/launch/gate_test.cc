#include "guest/launch/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "guest/testing/clock_fake.h"
#include "guest/testing/launch_fixture.h"

namespace carve::guest {
namespace {

constexpr uint64_t ms = 1'000'000;
constexpr shm::LeaseWord closed = shm::LeaseWord::of(shm::GateState::closed, 0, false, 1);
constexpr shm::LeaseWord lease = shm::LeaseWord::of(shm::GateState::lease, 1 * ms, false, 2);

TEST(Gate, allows_launches_when_open_or_before_the_lease_deadline) {
  EXPECT_TRUE(may_launch({}, 0, 0, 0, {}));
  EXPECT_TRUE(may_launch(lease, 0, 1000 * ms, 900 * ms, {})) << "a lease without a deadline";
  EXPECT_TRUE(may_launch(lease, 1000 * ms, 1000 * ms, 900 * ms, {}));
  EXPECT_FALSE(may_launch(lease, 999 * ms, 1000 * ms, 900 * ms, {}));
  EXPECT_FALSE(may_launch(closed, 0, 1000 * ms, 900 * ms, {}));
  EXPECT_FALSE(may_launch(closed, 0, 1000 * ms, 800 * ms, {})) << "200 ms is not stale yet";
}

TEST(Gate, follows_the_timetable_or_allows_every_launch_without_an_agent) {
  EXPECT_TRUE(may_launch(closed, 0, 1001 * ms, 800 * ms, {}));
  EXPECT_TRUE(may_launch(lease, 900 * ms, 1001 * ms, 800 * ms, {}));
  const struct {
    uint64_t now, offset;
    bool go;
  } table[] = {{1005, 5, true},  {1009, 5, true},  {1010, 5, false},
               {1004, 5, false}, {1095, 95, true}, {1101, 97, true}};
  for (const auto& row : table)
    EXPECT_EQ(may_launch(closed, 0, row.now * ms, 0, {100 * ms, row.offset * ms, 5 * ms}), row.go) << row.now;
}

TEST(Gate, sleeps_at_most_until_the_next_window) {
  constexpr Timetable table = {100, 30, 20};
  EXPECT_EQ(table.until_window(1030), 0u);
  EXPECT_EQ(table.until_window(1049), 0u);
  EXPECT_EQ(table.until_window(1050), 80u);
  EXPECT_EQ(table.until_window(1129), 1u);
  EXPECT_EQ((Timetable{0, 30, 20}.until_window(1050)), 0u);
  EXPECT_EQ((Timetable{100, 330, 0}.until_window(1030)), 100u) << "an empty window never begins";
}

// Two kernels of 3 ms are more than the limit of 1 ms. The second is launched before the first ends, so that
// the device has no pause.
TEST(Gate, allows_the_next_launch_shortly_before_the_only_one_in_flight_ends) {
  ThreadLaunchState l{};
  l.fence_count = 1;
  l.fence[0] = {.value = 1, .ns = 3 * ms, .inserted_at = 100 * ms, .slot = 0, .batch = 0, .alone = true};
  l.first_since = 90 * ms;
  EXPECT_EQ(until_nearly_done(l, 100 * ms), 3 * ms - launch_lead_ns);
  EXPECT_EQ(until_nearly_done(l, 103 * ms - launch_lead_ns), 0u);
  EXPECT_EQ(until_nearly_done(l, 200 * ms), 0u) << "the work takes longer than its estimate";
  l.first_since = 101 * ms;
  EXPECT_EQ(until_nearly_done(l, 101 * ms), 3 * ms - launch_lead_ns) << "the work before it ended late";
  l.fence[0].guess = true;
  EXPECT_EQ(until_nearly_done(l, 200 * ms), UINT64_MAX);
  l.fence[0].guess = false, l.unfenced = 1;
  EXPECT_EQ(until_nearly_done(l, 200 * ms), UINT64_MAX);
  l.unfenced = 0, l.fence_count = 2;
  EXPECT_EQ(until_nearly_done(l, 200 * ms), UINT64_MAX)
      << "one launch is already queued behind the running one";
}

using Launches = LaunchTest;

TEST_F(Launches, leave_no_trace_on_a_device_that_is_not_arbitrated) {
  ArbitratedSlice slice;
  slice.set(shm::GateState::open, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(launches->launched, 100);
  EXPECT_EQ(slice.work().threads_used, 0u);
  EXPECT_EQ(launches->fences, 0);
}

TEST_F(Launches, are_not_counted_without_shared_work_pages) {
  ArbitratedSlice slice;
  slice.close();
  gates.count = 0;  // As after an attach without work pages.
  EXPECT_EQ(launch(), CUDA_SUCCESS);
}

TEST_F(Launches, wait_only_at_their_own_devices_gate) {
  ArbitratedSlice slice(2);
  slice.close(1);
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(launches->launched, 1);
  std::jthread other([&] {
    current_device = 1;
    launch();
  });
  ASSERT_TRUE(soon([&] { return slice.line(1).waiting_since != 0; }));
  EXPECT_EQ(launches->count(launches->launched), 1);
  EXPECT_EQ(slice.line(1).device, 2u);
  slice.lease(UINT64_MAX, 1);
  other.join();
  EXPECT_EQ(launches->launched, 2);
  EXPECT_EQ(slice.line(1).waiting_since, 0u);
  EXPECT_GT(slice.line(1).waited, 0u);
  EXPECT_EQ(launch(), CUDA_SUCCESS) << "the first device's gate stayed open";
}

TEST_F(Launches, wait_at_the_gate_of_the_device_to_which_the_thread_switched) {
  ArbitratedSlice slice(2);
  slice.set(shm::GateState::open, 0, 0);
  slice.close(1);
  slice.heartbeat->monotonic_ns = 1;  // No live agent, and an empty timetable.
  slice.control->devices[1].fallback_period = 1ull << 62;
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  std::jthread waiting([&] {
    EXPECT_EQ(launch(), CUDA_SUCCESS);
    current_device = 1;
    cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x2000));
    launch();
  });
  ASSERT_TRUE(soon([&] {
    for (unsigned i = 0; i < 3; ++i)
      if (slice.line(i).waiting_since != 0) return true;
    return false;
  }));
  EXPECT_EQ(launches->count(launches->launched), 2);
  slice.set(shm::GateState::open, 0, 1);
  waiting.join();
  EXPECT_EQ(launches->launched, 3);
}

TEST_F(Launches, wait_for_a_new_lease_after_theirs_has_ended) {
  ArbitratedSlice slice;
  launches->at_once = true;
  for (int i = 0; i < 64; ++i) launch();
  slice.control->devices[0].lease_deadline = 1;
  std::atomic<int> more = 0;
  std::jthread other([&] {
    for (int i = 0; i < 40; ++i, ++more) launch();
  });
  ASSERT_TRUE(soon([&] { return slice.line(1).waiting_since != 0; }));
  EXPECT_EQ(more, 0);
  slice.control->devices[0].lease_deadline = 0;
  other.join();
  EXPECT_EQ(more, 40);
}

TEST_F(Launches, detect_the_end_of_the_lease_within_sixteen_launches) {
  ArbitratedSlice slice;
  launches->at_once = true;
  std::atomic<int> done = 0;
  std::atomic<bool> over = false;
  std::jthread other([&] {
    for (; !over || done < 1000; ++done) {
      if (done == 500) slice.control->devices[0].lease_deadline = 1;
      launch();
    }
  });
  ASSERT_TRUE(soon([&] { return slice.line().waiting_since != 0; }));
  EXPECT_GE(done, 500);
  EXPECT_LE(done, 500 + static_cast<int>(launches_per_deadline_check));
  over = true;
  slice.control->devices[0].lease_deadline = 0;
}

TEST_F(Launches, wake_a_sleeping_arbiter) {
  ArbitratedSlice slice;
  slice.close();
  slice.control->devices[0].arbiter = 5;
  std::atomic<uint32_t>& asleep = slice.heartbeat->arbiter[5].asleep;
  asleep = 1;
  std::jthread arbiter([&] {
    const timespec t = {10, 0};
    EXPECT_EQ(syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, &t, nullptr, 0), 0);
    asleep = 0;
    slice.lease(UINT64_MAX);
  });
  EXPECT_EQ(launch(), CUDA_SUCCESS);
}

TEST_F(Launches, stay_below_the_in_flight_limit_except_that_one_is_always_allowed) {
  ArbitratedSlice slice;
  slice.lease(100'000);  // Less than a fence interval, which is the assumed duration of an unknown kernel.
  launch();
  std::atomic<bool> second = false;
  std::jthread other([&] {
    launch(stream(1));
    launch(stream(1));
    second = true;
  });
  ASSERT_TRUE(soon([&] { return launches->count(launches->launched) == 2; }));
  EXPECT_FALSE(second);
  launches->run(stream(1));
  ASSERT_TRUE(soon([&] { return second.load(); }));
}

// Each read of the clock advances the time by 1 us. Sleeps end immediately.
struct SpinningClock final : VirtualClock {
  uint64_t now = 1'000'000'000;
  std::function<void()> look = [] {};
  int sleeps = 0;

  SpinningClock() { virtual_clock = this; }
  ~SpinningClock() { virtual_clock = nullptr; }
  uint64_t monotonic_ns() override {
    look();
    return now += 1'000;
  }
  void sleep_for(uint64_t ns) override { now += ns; }
  void sleep_on(const std::atomic<uint64_t>&, uint64_t, uint64_t ns) override {
    ++sleeps;
    now += ns;
  }
};

class AtClosedGate : public LaunchTest {
 protected:
  // Returns whether a waiting thread inserts a fence after a launch that has none yet. Host time would count
  // towards the estimates, so the test uses its own clock.
  static bool inserts_fence(ArbitratedSlice& slice, bool draining) {
    SpinningClock clock;
    launches->at_once = true;
    for (int i = 0; i < 40; ++i) {
      launch();
      cuCtxSynchronize();
    }
    launches->at_once = false;
    launch();
    EXPECT_GT(slice.line().unfenced, 0u);
    const int before = launches->fences;
    slice.control->devices[0].lease =
        shm::LeaseWord::of(shm::GateState::closed, 0, false, 77, /*uncontended=*/false, draining).value;
    const int slept_before = clock.sleeps;
    clock.look = [&] {
      if (clock.sleeps > slept_before + 20) slice.lease(UINT64_MAX);
    };
    launch();
    return launches->fences != before;
  }
};

TEST_F(AtClosedGate, launches_get_a_fence_if_the_arbiter_waits_for_their_completion) {
  ArbitratedSlice slice;
  EXPECT_TRUE(inserts_fence(slice, true));
}

TEST_F(AtClosedGate, launches_get_no_fence_while_another_slice_may_have_the_device) {
  ArbitratedSlice slice;
  EXPECT_FALSE(inserts_fence(slice, false));
}

TEST_F(AtClosedGate, a_thread_spins_if_the_gate_is_about_to_open) {
  ArbitratedSlice slice;
  launch();
  slice.close();
  SpinningClock clock;
  const auto closed = shm::LeaseWord::of(shm::GateState::closed, 0, false, 77);
  const auto imminent = shm::LeaseWord::of(shm::GateState::closed, 0, false, 77, false, false, true);
  int slept_before = -1;
  uint64_t woken = 0;
  clock.look = [&] {
    std::atomic<uint64_t>& word = slice.control->devices[0].lease;
    if (clock.sleeps < 3) return;
    if (slept_before < 0) {
      slept_before = clock.sleeps;
      woken = clock.now;
      word = imminent.value;
    }
    if (clock.now >= woken + 150'000) slice.lease(UINT64_MAX);
  };
  launch();
  EXPECT_EQ(clock.sleeps, slept_before) << "the thread did not sleep again within 150 us";

  slice.close();
  clock.sleeps = 0;
  slept_before = -1;
  clock.look = [&] {
    std::atomic<uint64_t>& word = slice.control->devices[0].lease;
    if (slept_before < 0) {
      slept_before = 0;
      word = imminent.value;
    }
    if (clock.sleeps == 2) word = closed.value;
    if (clock.sleeps == 4) slice.lease(UINT64_MAX);
  };
  launch();
  EXPECT_EQ(clock.sleeps, 4) << "the gate did not open in time";
}

TEST_F(Launches, may_use_the_in_flight_limits_of_other_idle_threads) {
  ArbitratedSlice slice;
  std::atomic<bool> ends = false;
  std::jthread other([&] {
    launch(stream(2));
    launches->run(stream(2));
    soon([&] { return ends.load(); });
  });
  ASSERT_TRUE(soon([&] { return launches->count(launches->launched) == 1; }));
  uint64_t still_until_ns = 0;
  {
    const StillClock clock;
    launches->at_once = true;
    for (int i = 0; i < 40; ++i) {
      launch(stream(1));
      StillClock::pass(100'000);
      cuStreamSynchronize(stream(1));
    }
    launches->at_once = false;
    still_until_ns = monotonic_ns();
  }
  ASSERT_TRUE(soon([&] { return monotonic_ns() >= still_until_ns; })) << "the real clock is behind";
  slice.lease(300'000);
  for (int i = 0; i < 5; ++i) launch(stream(1));  // 500 us in total.
  EXPECT_EQ(this_thread_state()->stall_escapes, 0u);
  launch(stream(1)), launch(stream(1));
  EXPECT_GT(this_thread_state()->stall_escapes, 0u) << "700 us exceed the limits of two threads";
  ends = true;
}

TEST_F(Launches, are_admitted_one_at_a_time_behind_a_long_unknown_kernel) {
  ArbitratedSlice slice;
  slice.lease(100'000);
  const uint64_t from = monotonic_ns();
  std::atomic<bool> ends = false;
  std::jthread other([&] {
    while (!ends) launch(stream(1));
  });
  ASSERT_TRUE(soon([&] { return launches->count(launches->launched) >= 4; }));
  const uint64_t passed_ms = (monotonic_ns() - from) / 1'000'000;
  EXPECT_LE(static_cast<uint64_t>(launches->count(launches->launched)), 2 + passed_ms / 10) << passed_ms;
  ends = true;
}

TEST_F(Launches, are_still_admitted_if_no_work_completes) {
  ArbitratedSlice slice;
  slice.lease(100'000);
  for (int i = 0; i < 5; ++i) launch(stream(1));
  EXPECT_EQ(launches->launched, 5);
  cuStreamSynchronize(stream(1));
  EXPECT_EQ(slice.line().flags, 0u);
  EXPECT_FALSE(shm::BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Launches, into_a_capture_do_not_wait_and_get_no_fence) {
  ArbitratedSlice slice;
  slice.close();
  launches->captured = stream(7);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(launch(stream(7)), CUDA_SUCCESS);
  EXPECT_EQ(launches->fences, 0);
  EXPECT_EQ(slice.line().unfenced, 0u);
  EXPECT_FALSE(shm::BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Launches, do_not_wait_forever_while_the_program_exits) {
  ArbitratedSlice slice;
  slice.close();
  slice.process->fence_page.ending = true;
  slice.process->fence_page.ending_waits = 990 * ms;
  EXPECT_EQ(launch(), CUDA_SUCCESS);
  EXPECT_EQ(launch(), CUDA_SUCCESS);
}

TEST_F(Launches, of_graphs_are_paced_and_estimated_per_executable_graph) {
  ArbitratedSlice slice;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(0x5550), stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.line().submitted, 600'000u);
  EXPECT_EQ(launches->fences, 3) << "their length is unknown, so each gets a fence";
}

}  // namespace
}  // namespace carve::guest
