#include "node/guard/budget_rules.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace carve::node {
namespace {

constexpr uint64_t MiB = 1 << 20;

guard_limits limits_of(const std::vector<uint64_t>& bytes) {
  guard_limits out{.parts = static_cast<uint32_t>(bytes.size())};
  for (uint32_t i = 0; i < bytes.size(); ++i) out.part[i] = {2 * i, 0, bytes[i], bytes[i]};
  return out;
}

TEST(budget_rules, compares_without_overflow) {
  EXPECT_TRUE(guard_fits(0, 0, 0));
  EXPECT_FALSE(guard_fits(0, 1, 0));
  EXPECT_TRUE(guard_fits(10, 90, 100));
  EXPECT_FALSE(guard_fits(10, 91, 100));
  EXPECT_FALSE(guard_fits(10, UINT64_MAX, 100));
  EXPECT_FALSE(guard_fits(101, 0, 100));  // The limit was lowered.
  EXPECT_TRUE(guard_fits(0, UINT64_MAX, UINT64_MAX));
}

TEST(budget_rules, an_allocation_uses_its_reservation_first) {
  const guard_limits limits = limits_of({100 * MiB});
  guard_usage usage{};
  __u64 left = 0;
  ASSERT_TRUE(guard_admit(&limits, &usage, 60 * MiB, &left));
  EXPECT_EQ(left, 60 * MiB);
  EXPECT_EQ(usage.part[0].committed, 60 * MiB);
  EXPECT_EQ(guard_allocate(&usage.part[0], &left, 50 * MiB), 50 * MiB);
  EXPECT_EQ(usage.part[0].committed, 60 * MiB);
  EXPECT_EQ(guard_allocate(&usage.part[0], &left, 14 * MiB), 64 * MiB);  // 4 MiB were not reserved.
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(usage.part[0].committed, 64 * MiB);
  guard_free(&usage.part[0], 64 * MiB);
  EXPECT_EQ(usage.part[0].used, 0u);
  EXPECT_EQ(usage.part[0].committed, 0u);
  EXPECT_EQ(usage.part[0].peak, 64 * MiB);
}

TEST(budget_rules, a_release_never_wraps_around) {
  __u64 word = 5;
  guard_release(&word, 6);
  EXPECT_EQ(word, 0u);
  guard_release(&word, UINT64_MAX);
  EXPECT_EQ(word, 0u);
}

TEST(budget_rules, refuses_everything_beyond_a_limit_or_after_an_uncounted_allocation) {
  const guard_limits limits = limits_of({100 * MiB});
  __u64 reserved = 0;
  guard_usage usage{.beyond = 1};
  EXPECT_FALSE(guard_admit(&limits, &usage, 1, &reserved));
  usage = {.uncounted = 1};
  EXPECT_FALSE(guard_admit(&limits, &usage, 1, &reserved));
  usage = {};
  EXPECT_TRUE(guard_admit(&limits, &usage, 1, &reserved));
}

TEST(budget_rules, several_parts_refuse_only_what_fits_on_none) {
  const guard_limits limits = limits_of({10 * MiB, 30 * MiB});
  guard_usage usage{};
  __u64 reserved = 1;
  EXPECT_TRUE(guard_admit(&limits, &usage, 30 * MiB, &reserved));
  EXPECT_EQ(reserved, 0u);
  EXPECT_FALSE(guard_admit(&limits, &usage, 30 * MiB + 1, &reserved));
  usage.part[1].committed = 25 * MiB;
  EXPECT_FALSE(guard_admit(&limits, &usage, 11 * MiB, &reserved));
  EXPECT_TRUE(guard_admit(&limits, &usage, 10 * MiB, &reserved));
  const guard_limits none = limits_of({});
  EXPECT_FALSE(guard_admit(&none, &usage, 0, &reserved));
}

TEST(budget_rules, a_slice_may_open_its_devices_and_the_control_node) {
  const guard_limits limits = limits_of({MiB, MiB});  // Minor numbers 0 and 2.
  EXPECT_TRUE(guard_may_open(&limits, GUARD_CONTROL_MINOR));
  EXPECT_TRUE(guard_may_open(&limits, 0));
  EXPECT_TRUE(guard_may_open(&limits, 2));
  EXPECT_FALSE(guard_may_open(&limits, 1));
  EXPECT_FALSE(guard_may_open(&limits, 254));  // nvidia-modeset
  EXPECT_EQ(guard_part_on(&limits, 2), 1u);
  EXPECT_EQ(guard_part_on(&limits, 1), GUARD_ALL_PARTS);
  const guard_limits one = limits_of({MiB});
  EXPECT_FALSE(guard_may_open(&one, 2));  // Unused elements of the array do not count.
}

// Threads reserve, allocate a part and drop the rest, as ioctls do at the same time.
TEST(budget_rules, threads_never_commit_more_than_the_limit) {
  const guard_limits limits = limits_of({64 * MiB});
  guard_usage usage{};
  std::atomic<unsigned> beyond{0}, admitted{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (unsigned i = 0; i < 20'000; ++i) {
        __u64 left = 0;
        if (!guard_admit(&limits, &usage, 24 * MiB, &left)) continue;
        ++admitted;
        if (guard_load(&usage.part[0].committed) > limits.part[0].bytes) ++beyond;
        guard_allocate(&usage.part[0], &left, 20 * MiB);
        guard_release(&usage.part[0].committed, left);
        guard_free(&usage.part[0], 20 * MiB);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(beyond, 0u);
  EXPECT_GT(admitted, 0u);
  EXPECT_EQ(usage.part[0].committed, 0u);
  EXPECT_EQ(usage.part[0].used, 0u);
}

}  // namespace
}  // namespace carve::node
