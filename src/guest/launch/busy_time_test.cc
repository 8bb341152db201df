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

TEST_F(Metering, inserts_a_fence_per_launch_of_an_unknown_kernel_and_per_batch_of_a_known_one) {
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

TEST_F(Metering, reports_the_progress_of_each_stream) {
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

TEST_F(Metering, reports_a_thread_as_busy_until_it_has_waited_for_all_its_streams) {
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

TEST_F(Metering, inserts_a_fence_after_unfenced_work_before_a_thread_waits) {
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

TEST_F(Metering, inserts_no_fence_if_the_thread_waits_for_short_work_and_no_other_slice_waits) {
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

TEST_F(Metering, inserts_fences_after_long_work_that_the_thread_does_not_wait_for) {
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
  EXPECT_EQ(launches->fences, 0) << "the thread has waited for each launch so far";
  launch(stream(1));
  EXPECT_EQ(launches->fences, 2) << "each launch takes 2 ms, and the thread did not wait";
  launch(stream(1));
  EXPECT_EQ(launches->fences, 3);
}

uint64_t estimate_of_kernel(unsigned kernel) {
  return estimate_at(*this_thread_state(), Launch{kernel, 1 | 1ull << 32, 1, 32 | 1 << 16 | 1ull << 32}.key())
      .ns;
}

TEST_F(Metering, does_not_shrink_the_estimates_if_the_host_is_slower_than_the_device) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock);
  launches->at_once = true;
  for (int i = 0; i < 2000; ++i) {
    launch();
    StillClock::pass(20'000);
  }
  // A batch is complete by the time its fence is inserted. It took at most the time since its first launch.
  EXPECT_GE(estimate_of_kernel(1), 8'000u);
  EXPECT_LE(estimate_of_kernel(1), 40'000u);
}

TEST_F(Metering, stops_guessing_for_a_kernel_whose_end_was_never_observed) {
  const StillClock clock;
  ArbitratedSlice slice;
  slice.lease(1'000'000);
  for (int i = 0; i < 5; ++i) {
    launch(stream(1), 7);  // Its lease ends before the kernel does.
    launches->run(stream(1));
    StillClock::pass(5'000'000);
  }
  launch(stream(1), 7);
  const ThreadLaunchState& l = *this_thread_state();
  EXPECT_EQ(l.fence_count, 1u);
  EXPECT_FALSE(l.fence[0].guess);
}

TEST_F(Metering, excludes_launches_of_other_threads_from_a_threads_estimates) {
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
      for (int k = 0; k < 6; ++k) launch(nullptr, 2);  // Their length is unknown: 200 us each.
    }).join();
    cuStreamSynchronize(nullptr);
  }
  EXPECT_LE(estimate_of_kernel(1), 2 * before);
}

TEST_F(Metering, wakes_a_waiting_arbiter_when_the_thread_becomes_idle) {
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

TEST_F(Metering, ends_the_busy_interval_at_a_blocking_copy) {
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

TEST_F(Metering, paces_only_large_copies_inside_the_device) {
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
  EXPECT_EQ(slice.work().threads_used, 0u) << "no thread has used a line";
  slice.lease(UINT64_MAX);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(0, 0, 2 << 20, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.line().submitted, 200'000u);
  EXPECT_EQ(cuMemsetD32Async(0, 0, 1 << 20, stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(slice.line().submitted, 400'000u);
  EXPECT_EQ(slice.work().copied[0], uint64_t{1} << 30);
  EXPECT_EQ(slice.work().copied[2], 4096u + (2 << 20) + (4 << 20));
}

TEST_F(Metering, uses_events_if_the_device_cannot_write_fences) {
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
  EXPECT_EQ(launches->recorded, 1) << "only one event is in flight";
  EXPECT_EQ(slice.line().unfenced, 200'000u);
  launches->run(stream(1));
  launch(stream(1));
  EXPECT_EQ(one.completed, 400'000u) << "a later poll found the event complete";
  cuStreamSynchronize(stream(1));
  EXPECT_EQ(one.completed, one.fenced);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Metering, switches_to_events_if_the_driver_keeps_rejecting_fences) {
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

TEST_F(Metering, treats_the_default_stream_of_each_context_as_a_stream_of_its_own) {
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

TEST_F(Metering, treats_the_per_thread_default_streams_as_separate_streams) {
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

TEST_F(Metering, reuses_the_entry_of_a_destroyed_stream_once_its_work_is_complete) {
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

TEST_F(Metering, inserts_no_fence_into_a_stream_that_another_thread_destroyed) {
  const StillClock clock;
  ArbitratedSlice slice;
  update_estimates(clock, stream(1));
  launch(stream(1));  // Has no fence yet.
  std::jthread([] { cuStreamDestroy_v2(stream(1)); }).join();
  cuCtxSynchronize();
  EXPECT_EQ(launches->fences, 0);
  EXPECT_EQ(slice.line().unfenced, 0u);
}

TEST_F(Metering, discards_the_work_in_flight_of_a_context_that_ended) {
  ArbitratedSlice slice;
  launch(stream(1));
  context_ended(*slice.process, current_context);
  EXPECT_EQ(slice.work().stream[0].completed, slice.work().stream[0].fenced);
  launch(stream(1));
  cuCtxSynchronize();
  EXPECT_EQ(launches->registered, 2) << "the page's registration may have ended with the context";
}

TEST_F(Metering, counts_work_as_unfenced_on_streams_beyond_the_limit) {
  ArbitratedSlice slice;
  for (uint64_t i = 1; i <= shm::work_streams + 6; ++i) launch(stream(i));
  EXPECT_EQ(slice.work().streams_used, shm::work_streams);
  EXPECT_EQ(launches->fences, static_cast<int>(shm::work_streams));
  EXPECT_EQ(slice.line().unfenced, 6 * 200'000u);
  cuCtxSynchronize();
  EXPECT_EQ(slice.line().unfenced, 0u);
  EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
}

TEST_F(Metering, sums_threads_beyond_the_limit_in_the_last_line) {
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

TEST_F(Metering, reuses_the_line_of_an_ended_thread_without_resetting_its_sums) {
  ArbitratedSlice slice;
  for (unsigned i = 1; i <= 5; ++i) {
    std::jthread([] { launch(stream(1)); }).join();
    EXPECT_EQ(slice.work().threads_used, 1u);
    EXPECT_EQ(slice.line().submitted, i * 200'000u);
    EXPECT_FALSE(BusyWord{slice.line().busy}.is_busy());
  }
}

TEST_F(Metering, resets_a_page_in_which_the_previous_image_left_fences_in_flight) {
  ArbitratedSlice slice;
  slice.work().stream[0].fenced = 77;
  slice.work().thread[5].device = 1;
  slice.work().thread[5].unfenced = 9;
  launch(stream(1));
  EXPECT_EQ(slice.work().streams_used, 1u) << "the entry is free";
  EXPECT_EQ(slice.work().thread[5].device, 0u);
  EXPECT_EQ(slice.work().thread[5].unfenced, 0u);
}

TEST_F(Metering, survives_invalid_values_in_its_own_page) {
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
