#include "guest/launch/busy_time.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <barrier>
#include <thread>

#include "guest/launch/paced_copy.h"
#include "guest/testing/clock_fake.h"
#include "guest/testing/launch_fixture.h"

namespace carve::guest {
namespace {

using shm::BusyWord;

class Metering : public LaunchTest {
 protected:
  // Launches until the kernel's estimate is 10 us.
  void update_estimates(const StillClock&, CUstream on = nullptr, unsigned kernel = 1) {
    launches->at_once = true;
    for (int i = 0; i < 40; ++i) {
      launch(on, kernel);
      StillClock::pass(10'000);
      cuStreamSynchronize(on);
    }
    launches->at_once = false;
    launches->fences = 0;
  }
};

TEST_F(Metering, of_an_unknown_kernel_marks_each_launch_and_of_a_known_one_each_batch) {
  const StillClock clock;
  ArbitratedSlice slice;
  launches->at_once = true;
  launch();
  EXPECT_EQ(launches->fences, 1);
  update_estimates(clock);
  const uint64_t ns =
      estimate_at(*this_thread_state(), Launch{1, 1 | 1ull << 32, 1, 32 | 1 << 16 | 1ull << 32}.key()).ns;
  ASSERT_LT(ns, 50'000u);
  const int batch = static_cast<int>(200'000 / ns);
  launches->at_once = true;
  for (int i = 0; i < 10 * batch; ++i) launch();
  EXPECT_GE(launches->fences, 5);
  EXPECT_LE(launches->fences, 11);
}

TEST_F(Metering, says_how_far_each_stream_has_come) {
  ArbitratedSlice slice;
  for (int i = 0; i < 2; ++i) launch(stream(1));
  launch(stream(2));
  const shm::StreamWork &one = slice.work().stream[0], &two = slice.work().stream[1];
  EXPECT_EQ(one.fenced, 400'000u);
  EXPECT_EQ(one.completed, 0u);
  EXPECT_EQ(two.fenced, 200'000u);
  EXPECT_EQ(slice.work().streams_used, 2u);
  EXPECT_EQ(slice.work().fence_kind, static_cast<uint32_t>(shm::FenceKind::memory));
  EXPECT_EQ(launches->registered, 1);
  EXPECT_EQ(slice.line().submitted, 600'000u);
  EXPECT_EQ(slice.line().unfenced, 0u);
  launches->run(stream(1), 1);
  EXPECT_EQ(one.completed, 200'000u);
  launches->run(stream(1));
  EXPECT_EQ(one.completed, one.fenced);
  EXPECT_EQ(two.completed, 0u);
}

TEST_F(Metering, calls_a_thread_busy_from_its_first_launch_until_it_waited_for_all) {
  ArbitratedSlice slice;
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  launch(stream(1));
  launch(stream(2));
  EXPECT_TRUE(BusyWord{slice.line().busy}.is_busy());
  cuStreamSynchronize(stream(1));
  EXPECT_TRUE(BusyWord{slice.line().busy}.is_busy()) << "the other stream is not complete";
  EXPECT_EQ(slice.line().flags, 0u);
  cuStreamSynchronize(stream(2));
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  const uint64_t total = BusyWord{slice.line().busy}.total(0);
  EXPECT_GT(total, 0u);
  EXPECT_LE(slice.line().idle_at, monotonic_ns());
  EXPECT_GE(slice.line().idle_at, total);
  launch(stream(1));
  cuEventSynchronize(nullptr);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  EXPECT_GT(BusyWord{slice.line().busy}.total(0), total);
}

TEST_F(Metering, puts_a_fence_behind_everything_before_a_thread_waits) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock, stream(1));
  launch(stream(1));
  launch(stream(1));
  EXPECT_EQ(launches->fences, 0);
  EXPECT_GT(slice.line().unfenced, 0u);
  static shm::ThreadWork* line;
  line = &slice.line();
  static uint32_t flags_inside;
  on<&cuStreamSynchronize>([](CUstream s) {
    flags_inside = line->flags;
    EXPECT_EQ(line->unfenced, 0u);
    launches->run(s);
    return CUDA_SUCCESS;
  });
  cuStreamSynchronize(stream(1));
  EXPECT_EQ(launches->fences, 1);
  EXPECT_EQ(flags_inside, shm::thread_synchronises);
}

TEST_F(Metering, puts_no_fence_behind_known_work_that_is_waited_for_where_no_other_slice_waits) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock, stream(1));
  slice.leave_uncontended();
  on<&cuStreamSynchronize>([](CUstream s) {
    launches->run(s);
    return CUDA_SUCCESS;
  });
  for (int i = 0; i < 10; ++i) {
    launch(stream(1));
    EXPECT_TRUE(BusyWord{slice.line().busy}.is_busy());
    cuStreamSynchronize(stream(1));
    EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
    EXPECT_EQ(slice.line().unfenced, 0u);
  }
  EXPECT_EQ(launches->fences, 0);
  slice.lease(UINT64_MAX);
  launch(stream(1));
  cuStreamSynchronize(stream(1));
  EXPECT_EQ(launches->fences, 1) << "another slice waits";
}

TEST_F(Metering, puts_a_fence_behind_long_work_that_is_not_waited_for) {
  const StillClock clock;
  ArbitratedSlice slice;
  on<&cuStreamSynchronize>([](CUstream s) {
    StillClock::pass(2'000'000);
    launches->run(s);
    return CUDA_SUCCESS;
  });
  for (int i = 0; i < 8; ++i) {
    launch(stream(1));
    cuStreamSynchronize(stream(1));
  }
  slice.leave_uncontended();
  launches->fences = 0;
  launch(stream(1));
  EXPECT_EQ(launches->fences, 0) << "the thread waited each time so far";
  launch(stream(1));
  EXPECT_EQ(launches->fences, 2) << "of 2 ms each, and the thread did not wait";
  launch(stream(1));
  EXPECT_EQ(launches->fences, 3);
}

uint64_t estimate_of_kernel(unsigned kernel) {
  return estimate_at(*this_thread_state(), Launch{kernel, 1 | 1ull << 32, 1, 32 | 1 << 16 | 1ull << 32}.key())
      .ns;
}

TEST_F(Metering, of_a_host_that_is_slower_than_the_device_does_not_shrink_the_estimates) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock);
  launches->at_once = true;
  for (int i = 0; i < 2000; ++i) {
    launch();
    StillClock::pass(20'000);
  }
  // A batch is complete when it gets its fence. It took at most the time since its first launch.
  EXPECT_GE(estimate_of_kernel(1), 8'000u);
  EXPECT_LE(estimate_of_kernel(1), 40'000u);
}

TEST_F(Metering, of_a_kernel_whose_end_was_not_seen_is_no_guess_for_ever) {
  const StillClock clock;
  ArbitratedSlice slice;
  slice.lease(1'000'000);
  for (int i = 0; i < 5; ++i) {
    launch(stream(1), 7);  // The last one before another thread's turn.
    launches->run(stream(1));
    StillClock::pass(5'000'000);
  }
  launch(stream(1), 7);
  const ThreadLaunchState& l = *this_thread_state();
  EXPECT_EQ(l.fence_count, 1u);
  EXPECT_FALSE(l.fence[0].guess);
}

TEST_F(Metering, leaves_out_what_other_threads_launched_before_the_wait_ended) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock);
  const uint64_t before = estimate_of_kernel(1);
  on<&cuStreamSynchronize>([](CUstream s) {
    StillClock::pass(1'000'000);
    launches->run(s);
    return CUDA_SUCCESS;
  });
  for (int i = 0; i < 10; ++i) {
    launch();
    std::jthread([&] {
      for (int k = 0; k < 6; ++k) launch(nullptr, 2);  // Of unknown length: 200 us each.
    }).join();
    cuStreamSynchronize(nullptr);
  }
  EXPECT_LE(estimate_of_kernel(1), 2 * before);
}

TEST_F(Metering, notifies_a_waiting_arbiter_immediately_that_the_thread_is_idle) {
  ArbitratedSlice slice;
  slice.set(shm::GateState::lease, UINT64_MAX, 0, true);
  std::atomic<uint32_t>& asleep = slice.heartbeat->arbiter[0].asleep;
  asleep = 1;
  launch();
  std::atomic<bool> woken = false;
  std::jthread arbiter([&] {
    const timespec t = {10, 0};
    woken = syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, &t, nullptr, 0) == 0;
  });
  ASSERT_TRUE(soon([&] {
    launch();
    cuStreamSynchronize(nullptr);
    return woken.load();
  }));
}

TEST_F(Metering, ends_a_busy_interval_with_a_copy_that_blocks) {
  ArbitratedSlice slice;
  on<&cuMemcpyDtoH_v2>([](void*, CUdeviceptr, size_t) {
    launches->run(nullptr);
    return CUDA_SUCCESS;
  });
  launch();
  EXPECT_TRUE(BusyWord{slice.line().busy}.is_busy());
  EXPECT_EQ(cuMemcpyDtoH_v2(nullptr, 0x1000, 4096), CUDA_SUCCESS);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  EXPECT_EQ(slice.work().copied[1], 4096u);
}

TEST_F(Metering, paces_large_copies_inside_the_device_and_no_others) {
  ArbitratedSlice slice;
  on<&cuMemcpyDtoDAsync_v2>([](CUdeviceptr, CUdeviceptr, size_t, CUstream s) {
    launches->put(s, {});
    return CUDA_SUCCESS;
  });
  on<&cuMemcpyHtoDAsync_v2>([](CUdeviceptr, const void*, size_t, CUstream) { return CUDA_SUCCESS; });
  on<&cuMemsetD32Async>([](CUdeviceptr, unsigned, size_t, CUstream s) {
    launches->put(s, {});
    return CUDA_SUCCESS;
  });
  slice.close();
  slice.heartbeat->monotonic_ns = 1;
  slice.control->devices[0].fallback_period = 0;
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(0, nullptr, 1 << 30, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(0, 0, 4096, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.work().threads_used, 0u) << "no thread has claimed a state";
  slice.lease(UINT64_MAX);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(0, 0, 2 << 20, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.line().submitted, 200'000u);
  EXPECT_EQ(cuMemsetD32Async(0, 0, 1 << 20, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.line().submitted, 400'000u);
  EXPECT_EQ(slice.work().copied[0], uint64_t{1} << 30);
  EXPECT_EQ(slice.work().copied[2], 4096u + (2 << 20) + (4 << 20));
}

TEST_F(Metering, uses_events_where_the_device_cannot_write) {
  ArbitratedSlice slice;
  launches->memory_operations = 0;
  launch(stream(1));
  EXPECT_EQ(launches->recorded, 1);
  EXPECT_EQ(launches->fences, 0);
  EXPECT_EQ(slice.work().fence_kind, static_cast<uint32_t>(shm::FenceKind::events));
  const shm::StreamWork& one = slice.work().stream[0];
  EXPECT_EQ(one.fenced, 200'000u);
  EXPECT_EQ(one.completed, 0u);
  launch(stream(1));
  EXPECT_EQ(launches->recorded, 1) << "one at a time";
  EXPECT_EQ(slice.line().unfenced, 200'000u);
  launches->run(stream(1));
  launch(stream(1));
  EXPECT_EQ(one.completed, 400'000u) << "found complete by a later poll";
  cuStreamSynchronize(stream(1));
  EXPECT_EQ(one.completed, one.fenced);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Metering, turns_to_events_where_the_driver_refuses_fences_again_and_again) {
  ArbitratedSlice slice;
  launches->fence_result = CUDA_ERROR_NOT_SUPPORTED;
  for (int i = 0; i < 20; ++i) {
    launch(stream(1));
    cuStreamSynchronize(stream(1));
    EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  }
  EXPECT_GT(launches->recorded, 0);
  EXPECT_EQ(slice.work().stream[0].completed, slice.work().stream[0].fenced);
}

TEST_F(Metering, knows_the_default_stream_of_each_context_as_another) {
  ArbitratedSlice slice;
  cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1000));
  launch();
  cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x2000));
  launch();
  cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1000));
  launch();
  EXPECT_EQ(slice.work().streams_used, 2u);
  EXPECT_EQ(slice.work().stream[0].fenced, 400'000u);
  EXPECT_EQ(slice.work().stream[1].fenced, 200'000u);
}

TEST_F(Metering, knows_the_default_stream_of_each_thread_as_another_where_it_is) {
  ArbitratedSlice slice;
  const auto launch_mine = [] {
    cuLaunchKernel_ptsz(reinterpret_cast<CUfunction>(uint64_t{1}), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                        nullptr);
  };
  launch_mine();
  std::jthread(launch_mine).join();
  launch();
  EXPECT_EQ(slice.work().streams_used, 3u);
}

TEST_F(Metering, gives_a_destroyed_streams_place_to_another_when_it_is_complete) {
  ArbitratedSlice slice;
  for (uint64_t i = 1; i <= 200; ++i) {
    launch(stream(i));
    EXPECT_EQ(cuStreamDestroy_v2(stream(i)), CUDA_SUCCESS);
    launches->run(stream(i));
  }
  EXPECT_EQ(slice.work().streams_used, 1u);
  launch(stream(201));
  cuStreamDestroy_v2(stream(201));
  launch(stream(202));
  EXPECT_EQ(slice.work().streams_used, 2u) << "its work is still in flight";
}

TEST_F(Metering, puts_no_fence_into_a_stream_that_another_thread_destroyed) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock, stream(1));
  launch(stream(1));  // Pending.
  std::jthread([] { cuStreamDestroy_v2(stream(1)); }).join();
  cuCtxSynchronize();
  EXPECT_EQ(launches->fences, 0);
  EXPECT_EQ(slice.line().unfenced, 0u);
}

TEST_F(Metering, forgets_what_was_under_way_in_a_context_that_ended) {
  ArbitratedSlice slice;
  launch(stream(1));
  context_ended(*slice.process, current_context);
  EXPECT_EQ(slice.work().stream[0].completed, slice.work().stream[0].fenced);
  launch(stream(1));
  cuCtxSynchronize();
  EXPECT_EQ(launches->registered, 2) << "the page may have gone with it";
}

TEST_F(Metering, of_more_busy_streams_than_there_are_places_counts_the_rest_as_unfenced) {
  ArbitratedSlice slice;
  for (uint64_t i = 1; i <= shm::work_streams + 6; ++i) launch(stream(i));
  EXPECT_EQ(slice.work().streams_used, shm::work_streams);
  EXPECT_EQ(launches->fences, static_cast<int>(shm::work_streams));
  EXPECT_EQ(slice.line().unfenced, 6 * 200'000u);
  cuCtxSynchronize();
  EXPECT_EQ(slice.line().unfenced, 0u);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Metering, of_more_threads_than_there_are_lines_adds_the_rest_up_in_the_last) {
  ArbitratedSlice slice;
  constexpr unsigned threads = shm::work_threads + 10, each = 50;
  {
    std::barrier all(threads);
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads; ++i)
      running.emplace_back([&, i] {
        for (unsigned n = 0; n < each; ++n) launch(stream(i % 8 + 1));
        all.arrive_and_wait();
      });
  }
  EXPECT_EQ(slice.work().threads_used, shm::work_threads);
  EXPECT_EQ(launches->launched, static_cast<int>(threads * each));
  uint64_t others = 0;
  for (unsigned i = 0; i + 1 < shm::work_threads; ++i) {
    others += slice.line(i).submitted > 0;
    EXPECT_EQ(slice.line(i).device, 0u) << "the thread has ended";
    EXPECT_EQ(slice.line(i).unfenced, 0u);
  }
  EXPECT_EQ(others, shm::work_threads - 1);
  EXPECT_GE(slice.line(shm::work_threads - 1).submitted, 11 * each * min_launch_ns);
  EXPECT_EQ(slice.line(shm::work_threads - 1).unfenced, 0u);
}

TEST_F(Metering, gives_an_ended_threads_line_to_the_next_and_its_sums_only_grow) {
  ArbitratedSlice slice;
  for (unsigned i = 1; i <= 5; ++i) {
    std::jthread([] { launch(stream(1)); }).join();
    EXPECT_EQ(slice.work().threads_used, 1u);
    EXPECT_EQ(slice.line().submitted, i * 200'000u);
    EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  }
}

TEST_F(Metering, starts_over_in_a_page_that_another_image_left_with_fences_in_flight) {
  ArbitratedSlice slice;
  slice.work().stream[0].fenced = 77;
  slice.work().thread[5].device = 1;
  slice.work().thread[5].unfenced = 9;
  launch(stream(1));
  EXPECT_EQ(slice.work().streams_used, 1u) << "the place is free";
  EXPECT_EQ(slice.work().thread[5].device, 0u);
  EXPECT_EQ(slice.work().thread[5].unfenced, 0u);
}

TEST_F(Metering, does_not_hang_on_nonsense_in_its_own_page) {
  ArbitratedSlice slice;
  slice.lease(100'000);
  launch(stream(1));
  for (const uint64_t nonsense : {UINT64_MAX, uint64_t{0}, uint64_t{1} << 63}) {
    slice.work().stream[0].completed = nonsense;
    slice.work().stream[0].fenced = nonsense / 3;
    EXPECT_EQ(launch(stream(1)), CUDA_SUCCESS);
  }
}

}  // namespace
}  // namespace carve::guest
