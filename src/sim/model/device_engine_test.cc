#include "sim/model/device_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "sim/model/memory.h"
#include "sim/model/test_device.h"

namespace carve::sim {
namespace {

constexpr uint64_t us = 1000, ms = 1000 * us, s = 1000 * ms;

TEST(Engine, gives_two_busy_contexts_equal_shares_apart_from_switches) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  for (int i = 0; i < 1000; ++i) d.kernel(a, 1, 5 * ms), d.kernel(b, 1, 5 * ms);
  d.at(2 * s);
  const double share_a = d->contexts[a].busy_ns / 2e9, share_b = d->contexts[b].busy_ns / 2e9;
  EXPECT_NEAR(share_a, 2.0 / 4.2, 0.001);
  EXPECT_NEAR(share_b, 2.0 / 4.2, 0.001);
}

TEST(Engine, never_interrupts_a_single_context) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t end = d.start + 50 * ms;
  const uint64_t op = d.kernel(a, 1, 50 * ms);
  d.at(49 * ms);
  EXPECT_FALSE(complete(*d, a, 1, op));
  d.at(1 * s);
  ASSERT_TRUE(complete(*d, a, 1, op));
  EXPECT_EQ(d.op(a, 1, op).end_ns, end);
}

TEST(Engine, switches_from_an_idle_owner_immediately_and_resumes_preempted_kernels) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  const uint64_t x = d.kernel(a, 1, 3 * ms);
  const uint64_t y = d.kernel(b, 1, 1 * ms);
  d.at(1 * s);
  // a: 2 ms, switch, b: 1 ms (idle: yields), switch, a: 1 ms.
  EXPECT_EQ(d.op(b, 1, y).end_ns - d.start, 2 * ms + 100 * us + 1 * ms);
  EXPECT_EQ(d.op(a, 1, x).end_ns - d.start, 3 * ms + 200 * us + 1 * ms);
}

TEST(Engine, runs_kernels_of_one_context_in_parallel_on_free_multiprocessors) {
  TestDevice d;  // 72 multiprocessors
  const unsigned a = d.open();
  const uint64_t wide = d.kernel(a, 1, 1 * ms, 36);
  const uint64_t narrow = d.kernel(a, 2, 1 * ms, 36);
  const uint64_t third = d.kernel(a, 3, 1 * ms, 72);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 1, wide).end_ns - d.start, 1 * ms);
  EXPECT_EQ(d.op(a, 2, narrow).end_ns - d.start, 1 * ms);
  EXPECT_EQ(d.op(a, 3, third).end_ns - d.start, 2 * ms);
}

TEST(Engine, limits_the_channels_of_a_partition_to_its_multiprocessors) {
  TestDevice d;  // 72 multiprocessors
  const unsigned a = d.open();
  for (const unsigned k : {1u, 2u}) d->contexts[a].channels[k].partition = 18;
  d->contexts[a].channels[3].partition_first = 18;
  d->contexts[a].channels[3].partition = 18;
  const uint64_t wide = d.kernel(a, 1, 1 * ms, 72);
  const uint64_t after_it = d.kernel(a, 2, 1 * ms, 18);
  const uint64_t other = d.kernel(a, 3, 1 * ms, 36);
  const uint64_t free = d.kernel(a, 4, 1 * ms, 36);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 1, wide).end_ns - d.start, 4 * ms);
  EXPECT_EQ(d.op(a, 2, after_it).end_ns - d.start, 5 * ms);
  EXPECT_EQ(d.op(a, 3, other).end_ns - d.start, 2 * ms);
  EXPECT_EQ(d.op(a, 4, free).end_ns - d.start, 1 * ms);
}

TEST(Engine, gives_multiprocessors_to_an_urgent_stream_first) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t batch = d.kernel(a, 1, 2 * ms, 72, 0);
  d.at(1 * ms);
  const uint64_t urgent = d.kernel(a, 2, 1 * ms, 72, -5);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 2, urgent).end_ns - d.start, 2 * ms);
  EXPECT_EQ(d.op(a, 1, batch).end_ns - d.start, 3 * ms);
}

TEST(Engine, runs_one_copy_per_direction_in_parallel_with_kernels) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t k = d.kernel(a, 1, 4 * ms);
  const uint64_t up1 = d.push(a, 2, OpKind::to_device, 3 * ms), up2 = d.push(a, 3, OpKind::to_device, 3 * ms);
  const uint64_t down = d.push(a, 4, OpKind::to_host, 3 * ms);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 1, k).end_ns - d.start, 4 * ms);
  EXPECT_EQ(d.op(a, 2, up1).end_ns - d.start, 3 * ms);
  EXPECT_EQ(d.op(a, 3, up2).end_ns - d.start, 6 * ms);
  EXPECT_EQ(d.op(a, 4, down).end_ns - d.start, 3 * ms);
}

TEST(Engine, delays_an_operation_until_its_dependencies_in_other_channels_complete) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t first = d.kernel(a, 1, 5 * ms, 1);
  Op wait{};
  wait.kind = OpKind::mark;
  wait.dependency_count = 1;
  wait.dependencies[0] = {1, 0, static_cast<uint32_t>(first + 1)};
  push(*d, a, 2, wait, d.now);
  const uint64_t second = d.kernel(a, 2, 1 * ms, 1);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 2, second).end_ns - d.start, 6 * ms);
}

TEST(Engine, orders_the_legacy_stream_and_blocking_streams) {
  TestDevice d;
  const unsigned a = d.open();
  d->contexts[a].channels[1].blocking = 1;
  const uint64_t before = d.kernel(a, 1, 1 * ms, 1), legacy = d.kernel(a, 0, 1 * ms, 1);
  const uint64_t after = d.kernel(a, 1, 1 * ms, 1), free = d.kernel(a, 2, 1 * ms, 1);
  d.at(1 * s);
  EXPECT_EQ(d.op(a, 1, before).end_ns - d.start, 1 * ms);
  EXPECT_EQ(d.op(a, 0, legacy).end_ns - d.start, 2 * ms);
  EXPECT_EQ(d.op(a, 1, after).end_ns - d.start, 3 * ms);
  EXPECT_EQ(d.op(a, 2, free).end_ns - d.start, 1 * ms);
}

TEST(Engine, blocks_a_channel_until_the_process_has_run_its_host_function) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t call = d.push(a, 1, OpKind::host, 0), next = d.kernel(a, 1, 1 * ms);
  d.at(10 * ms);
  EXPECT_FALSE(complete(*d, a, 1, call));
  host_done(*d, a, 1, d.now);
  d.at(20 * ms);
  EXPECT_EQ(d.op(a, 1, next).end_ns - d.start, 11 * ms);
}

TEST(Engine, ends_a_hung_kernel_only_when_the_fault_is_cleared) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  d->faults.hang = 1;
  const uint64_t hung = d.kernel(a, 1, 1 * ms), other = d.kernel(b, 1, 1 * ms);
  d.at(60 * s);
  EXPECT_FALSE(complete(*d, a, 1, hung));
  EXPECT_TRUE(complete(*d, b, 1, other));
  release_hung(*d, d.now);
  d.at(61 * s);
  EXPECT_TRUE(complete(*d, a, 1, hung));
}

TEST(Engine, has_no_room_in_a_full_ring_until_the_head_completes) {
  TestDevice d;
  const unsigned a = d.open();
  for (unsigned i = 0; i < ring_size; ++i) {
    ASSERT_TRUE(has_room(*d, a, 1));
    d.kernel(a, 1, 1 * ms);
  }
  EXPECT_FALSE(has_room(*d, a, 1));
  d.at(1 * ms);
  EXPECT_TRUE(has_room(*d, a, 1));
}

TEST(Engine, reports_the_share_of_time_with_a_kernel_as_utilisation) {
  TestDevice d;
  const unsigned a = d.open();
  for (uint64_t t = 0; t < 2 * s; t += 10 * ms) {
    d.at(t);
    d.kernel(a, 1, 4 * ms);
    compute_percent(*d, d.now);
  }
  EXPECT_NEAR(compute_percent(*d, d.now), 40, 3);
}

TEST(Engine, excludes_a_long_idle_time_from_the_utilisation) {
  TestDevice d;
  const unsigned a = d.open();
  d.at(3600 * s);
  d.kernel(a, 1, 10 * s);
  d.at(3601 * s);
  EXPECT_EQ(compute_percent(*d, d.now), 100u);
  EXPECT_EQ(context_percent(*d, a, d.now), 100u);
}

// The samples since `from`, by context.
std::map<unsigned, std::vector<uint32_t>> samples_of(const Device& d, uint64_t from) {
  std::map<unsigned, std::vector<uint32_t>> out;
  for (uint64_t n = from; n < d.work.count; ++n)
    out[d.work.samples[n % max_work_samples].context].push_back(d.work.samples[n % max_work_samples].percent);
  return out;
}

TEST(Engine, records_one_context_and_the_devices_busy_time_per_work_sample) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  d.at(1 * s);
  const uint64_t first = d->work.count;
  d.kernel(a, 1, 100 * s);
  d.kernel(b, 1, 100 * s);
  d.at(1 * s + 12 * s);
  const auto both = samples_of(*d, first);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both.at(a).size() + both.at(b).size(), 60u)
      << "one sample for each 200 ms, however often the samples are read";
  EXPECT_NEAR(static_cast<double>(both.at(a).size()), 30, 15);
  for (const auto& [context, percents] : both)
    for (const uint32_t percent : percents) EXPECT_GE(percent, 90u);
  abandon(*d, a, d.now);
  abandon(*d, b, d.now);
  d.at(20 * s);
  const uint64_t idle = d->work.count;
  d.at(30 * s);
  for (const auto& [context, percents] : samples_of(*d, idle))
    for (const uint32_t percent : percents) EXPECT_EQ(percent, 0u);
  d.at(7200 * s);
  const uint64_t late = d->work.count;
  d.kernel(b, 1, 1 * s);
  d.at(7201 * s);
  EXPECT_EQ(samples_of(*d, late).at(b).size(), 5u);
}

// Runs a random program over 4 contexts and 6 channels with a fixed seed. `stepping` only determines when
// another process reads the device in between.
std::vector<uint64_t> finish_times(uint32_t program, uint32_t stepping) {
  TestDevice d;
  std::mt19937 choose(program), step(stepping);
  std::vector<std::pair<std::pair<unsigned, unsigned>, uint64_t>> submitted;
  std::map<std::pair<unsigned, unsigned>, uint64_t> last;
  for (int i = 0; i < 4; ++i) {
    const unsigned c = d.open();
    d->contexts[c].channels[1].blocking = d->contexts[c].channels[2].blocking = 1;
  }
  uint64_t t = 0;
  for (int i = 0; i < 600; ++i) {
    t += choose() % (300 * us);
    while (stepping && step() % 3 && d.now < d.start + t)
      d.at(d.now - d.start + step() % (d.start + t - d.now + 1)), compute_percent(*d, d.now);
    d.at(t);
    const unsigned context = choose() % 4, channel = choose() % 6;
    Op op{};
    op.kind = static_cast<OpKind>(choose() % 5);
    op.duration_ns = choose() % (2 * ms);
    op.width = static_cast<uint16_t>(1 + choose() % 72);
    op.priority = static_cast<int16_t>(-static_cast<int>(choose() % 3));
    const unsigned other = choose() % 6;
    if (other != channel && choose() % 4 == 0 && last.contains({context, other})) {
      op.dependency_count = 1;
      op.dependencies[0] = {static_cast<uint16_t>(other), 0,
                            static_cast<uint32_t>(last[{context, other}] + 1)};
    }
    const uint64_t n = push(*d, context, channel, op, d.now);
    last[{context, channel}] = n;
    submitted.push_back({{context, channel}, n});
  }
  d.at(100 * s);
  std::vector<uint64_t> ends;
  for (auto& [where, n] : submitted) {
    EXPECT_TRUE(complete(*d, where.first, where.second, n));
    ends.push_back(d.op(where.first, where.second, n).end_ns);
  }
  return ends;
}

TEST(Engine, computes_finish_times_that_do_not_depend_on_readers) {
  for (uint32_t program = 1; program <= 20; ++program) {
    const std::vector<uint64_t> once = finish_times(program, 0);
    for (uint32_t stepping = 1; stepping <= 11; ++stepping)
      ASSERT_EQ(finish_times(program, stepping), once) << "program " << program << ", stepping " << stepping;
  }
}

TEST(Engine, never_completes_an_operation_before_the_bound_for_waiters) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    TestDevice d;
    std::mt19937 r(seed);
    const unsigned a = d.open(), b = d.open();
    std::vector<uint64_t> ops;
    for (int i = 0; i < 50; ++i) {
      d.at(i * 100 * us);
      d.kernel(b, 1, r() % ms, 1 + r() % 72);
      ops.push_back(d.kernel(a, 1, r() % ms, 1 + r() % 72));
      const uint64_t bound = earliest_end(*d, a, 1, ops.back());
      TestDevice copy = d;
      copy.until(bound - 1);
      EXPECT_FALSE(bound > d.now && complete(*copy, a, 1, ops.back()));
    }
  }
}

}  // namespace
}  // namespace carve::sim
