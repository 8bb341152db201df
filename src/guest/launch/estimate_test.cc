#include "guest/launch/estimate.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace carve::guest {
namespace {

constexpr uint64_t us = 1'000;

std::unique_ptr<ThreadLaunchState> thread() { return std::make_unique<ThreadLaunchState>(); }

TEST(Estimate, is_keyed_by_function_grid_and_block_but_not_by_stream) {
  const Launch base = {0x7f00'1234'5600, 8 | 4ull << 32, 2, 128 | 2 << 16};
  std::set<uint64_t> keys = {base.key()};
  Launch other = base;
  other.stream = 5;
  EXPECT_EQ(other.key(), base.key()) << "the stream does not matter";
  const auto differs = [&](auto change) {
    Launch l = base;
    change(l);
    EXPECT_TRUE(keys.insert(l.key()).second);
  };
  differs([](Launch& l) { l.what += 16; });
  differs([](Launch& l) { l.grid_xy = 4 | 8ull << 32; });
  differs([](Launch& l) { l.grid_z = 3; });
  differs([](Launch& l) { l.block = 2 | 128 << 16; });
  EXPECT_NE(Launch{}.key(), 0u);
}

TEST(Estimate, is_found_again_for_nearly_all_of_250_kernels) {
  const auto l = thread();
  unsigned kept = 0;
  for (const bool again : {false, true}) {
    for (uint64_t i = 0; i < 250; ++i) {
      const uint64_t key = Launch{0x7f00'0000'0000 + i * 96, 64 + i % 7, 1, 128}.key();
      kept += again && estimate_at(*l, key).key == key;
      ++l->batch;
      record_use(*l, entry_of(*l, key, 1));
    }
  }
  EXPECT_GE(kept, 220u);
}

TEST(Estimate, replaces_the_older_of_two_when_a_new_kernel_arrives) {
  const auto l = thread();
  l->batch = 10;
  const uint64_t set = uint64_t{7} << 56;
  for (const uint64_t key : {set | 1, set | 3, set | 5}) {
    record_use(*l, entry_of(*l, key, key));
    ++l->batch;
  }
  EXPECT_NE(estimate_at(*l, set | 1).key, set | 1);
  EXPECT_EQ(estimate_at(*l, set | 3).key, set | 3);
  EXPECT_EQ(estimate_at(*l, set | 5).key, set | 5);
}

TEST(Estimate, corrects_a_guess_in_full_and_a_measured_value_by_a_quarter) {
  EXPECT_EQ(corrected(200 * us, false, 5 * us, 200 * us), 5 * us);
  EXPECT_EQ(corrected(200 * us, true, 100 * us, 200 * us), 175 * us);
  EXPECT_EQ(corrected(200 * us, true, 400 * us, 200 * us), 250 * us);
  EXPECT_EQ(corrected(100 * us, true, 1, 0), 100 * us) << "nothing was measured";
}

TEST(Estimate, stays_within_its_limits_whatever_was_measured) {
  EXPECT_EQ(corrected(200 * us, false, 0, 200 * us), min_launch_ns);
  EXPECT_EQ(corrected(200 * us, false, UINT64_MAX, 1), max_launch_ns);
  EXPECT_EQ(corrected(200 * us, true, UINT64_MAX, 1), 550 * us)
      << "a measured value changes by at most a factor of 8 per correction";
}

TEST(Estimate, does_not_change_for_kernels_that_took_no_part) {
  const auto l = thread();
  Estimate& old = entry_of(*l, uint64_t{1} << 56 | 1, 50 * us);
  old.measured = 1;
  l->batch = 90;
  record_use(*l, old);
  l->batch = 100;
  l->longest = old.ns;
  Estimate& fresh = entry_of(*l, uint64_t{2} << 56 | 1, 200 * us);
  record_use(*l, fresh);
  EXPECT_EQ(update_estimates(*l, 100, 20 * us, 200 * us), 50 * us) << "the longest known launch";
  EXPECT_EQ(old.ns, 50 * us);
  EXPECT_EQ(fresh.ns, 20 * us);
}

TEST(Estimate, is_corrected_once_for_each_kernel_that_took_part) {
  for (const unsigned kernels : {1u, 63u, 64u, 65u, 500u}) {
    const auto l = thread();
    l->batch = 7;
    std::vector<Estimate*> measured;
    for (unsigned i = 0; i < kernels; ++i) {
      // Each entry is in a set of its own.
      measured.push_back(&entry_of(*l, uint64_t{i} << 54 | 1, 100 * us));
      record_use(*l, *measured.back());
      record_use(*l, *measured.back());
      if (i % 3 == 0) ++l->batch;
    }
    for (Estimate* e : measured) record_use(*l, *e);
    update_estimates(*l, 7, 50 * us, 100 * us);
    for (const Estimate* e : measured) EXPECT_EQ(e->ns, 50 * us) << kernels;
  }
}

TEST(Estimate, of_a_function_with_a_new_shape_is_taken_from_its_other_shapes) {
  const auto l = thread();
  l->batch = 5;
  const Launch known = {0x5550, 64, 1, 128}, fresh = {0x5550, 65, 1, 128}, other = {0x6660, 64, 1, 128};
  EXPECT_EQ(estimate_of(*l, known, 200 * us).measured, 0u);
  record_use(*l, estimate_of(*l, known, 200 * us));
  update_estimates(*l, l->batch, 20 * us, 200 * us);
  EXPECT_EQ(estimate_of(*l, known, 200 * us).ns, 20 * us);
  EXPECT_EQ(estimate_of(*l, fresh, 200 * us).ns, 20 * us);
  EXPECT_EQ(estimate_of(*l, fresh, 200 * us).measured, 1u);
  EXPECT_EQ(estimate_of(*l, other, 200 * us).ns, 200 * us);
  EXPECT_EQ(estimate_of(*l, other, 200 * us).measured, 0u);
}

TEST(Estimate, converges_to_the_right_sum_for_a_mixture_of_kernels) {
  const auto l = thread();
  Estimate& shorter = entry_of(*l, uint64_t{1} << 56 | 1, 200 * us);
  Estimate& longer = entry_of(*l, uint64_t{2} << 56 | 1, 200 * us);
  // Nine kernels of 5 us and one of 400 us, repeatedly.
  for (int round = 0; round < 60; ++round) {
    ++l->batch;
    record_use(*l, shorter);
    record_use(*l, longer);
    update_estimates(*l, l->batch, (9 * 5 + 400) * us, 9 * shorter.ns + longer.ns);
  }
  const uint64_t sum = 9 * shorter.ns + longer.ns;
  EXPECT_NEAR(static_cast<double>(sum), 445e3, 4.5e3);
}

}  // namespace
}  // namespace carve::guest
