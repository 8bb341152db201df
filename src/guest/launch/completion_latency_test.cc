#include "guest/launch/completion_latency.h"

#include <gtest/gtest.h>

#include "guest/testing/clock_fake.h"
#include "guest/testing/launch_fixture.h"

namespace carve::guest {
namespace {

// The device works for 1 ms after each launch, and the host's wait returns after 3 ms.
struct CompletionLatency : LaunchTest {
  CompletionLatency() {
    launches->device_ms = 1;
    on<&cuStreamSynchronize>([](CUstream stream) {
      StillClock::pass(3'000'000);
      launches->run(stream);
      return CUDA_SUCCESS;
    });
  }
  static uint64_t busy(ArbitratedSlice& slice) {
    return shm::BusyWord{slice.line().busy}.total(monotonic_ns());
  }
  // Returns the busy time by the host's clock, and the busy time that the thread reports.
  static std::pair<uint64_t, uint64_t> rounds(ArbitratedSlice& slice, int count) {
    const uint64_t before = busy(slice), from = monotonic_ns();
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(launch(stream(1)), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(stream(1)), CUDA_SUCCESS);
    }
    return {monotonic_ns() - from, busy(slice) - before};
  }
  StillClock clock_;
};

TEST_F(CompletionLatency, is_not_charged) {
  ArbitratedSlice slice;
  rounds(slice, 8);
  const auto [host, said] = rounds(slice, 30);
  EXPECT_EQ(host, 90'000'000u);
  EXPECT_EQ(said, 30'000'000u);
}

TEST_F(CompletionLatency, is_measured_in_one_of_16_synchronisations) {
  ArbitratedSlice slice;
  rounds(slice, 8);
  const int before = launches->recorded;
  rounds(slice, 64);
  EXPECT_LE(launches->recorded - before, 2 * 64 / 16);
  EXPECT_GE(launches->recorded - before, 2);
}

TEST_F(CompletionLatency, is_measured_and_subtracted_if_the_streams_alternate) {
  ArbitratedSlice slice;
  const auto turns = [&](int count) {
    const uint64_t before = busy(slice), from = monotonic_ns();
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(launch(stream(1 + static_cast<uint64_t>(i) % 4)), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamSynchronize(stream(1 + static_cast<uint64_t>(i) % 4)), CUDA_SUCCESS);
    }
    return std::pair(monotonic_ns() - from, busy(slice) - before);
  };
  turns(8);
  const int before = launches->recorded;
  const auto [host, said] = turns(64);
  EXPECT_LE(launches->recorded - before, 2 * 64 / 16);
  EXPECT_EQ(said, host / 3);
}

TEST_F(CompletionLatency, is_not_measured_while_several_streams_have_work) {
  ArbitratedSlice slice;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(launch(stream(1)), CUDA_SUCCESS);
    EXPECT_EQ(launch(stream(2)), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream(1)), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream(2)), CUDA_SUCCESS);
  }
  EXPECT_LE(launches->recorded, 4 + 64 / 16)
      << "samples are abandoned, because the second stream may end later";
}

TEST_F(CompletionLatency, is_rarely_measured_if_no_other_slice_waits) {
  ArbitratedSlice slice;
  rounds(slice, 8);
  slice.leave_uncontended();
  const int before = launches->recorded;
  rounds(slice, 64);
  EXPECT_LE(launches->recorded - before, 2);
}

TEST_F(CompletionLatency, is_not_subtracted_if_events_fail) {
  launches->device_ms = 0;
  ArbitratedSlice slice;
  rounds(slice, 8);
  const auto [host, said] = rounds(slice, 10);
  EXPECT_EQ(said, host);
  EXPECT_EQ(launches->recorded, 0);
}

TEST_F(CompletionLatency, never_makes_the_reported_time_decrease) {
  ArbitratedSlice slice;
  rounds(slice, 8);
  // From now on the wait is shorter than the previous completion latency.
  on<&cuStreamSynchronize>([](CUstream stream) {
    launches->run(stream);
    return CUDA_SUCCESS;
  });
  uint64_t last = busy(slice);
  for (int i = 0; i < 100; ++i) {
    rounds(slice, 1);
    const uint64_t now = busy(slice);
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST_F(CompletionLatency, drops_its_events_when_their_context_ends) {
  ArbitratedSlice slice;
  rounds(slice, 8);
  const auto first = this_thread_state()->sample.context;
  context_ended(*slice.process, first);
  EXPECT_EQ(this_thread_state()->sample.context, 0u);
  EXPECT_FALSE(this_thread_state()->sample.open);
}

}  // namespace
}  // namespace carve::guest
