#include "node/reconcile/growth.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr uint64_t MiB = 1 << 20;

TEST(Growth, is_what_truth_shows_beyond_the_charges) {
  Growth g;
  EXPECT_EQ(g.wanted(0, {100 * MiB, 1, 100 * MiB, 1, 100 * MiB}), 0u);
  EXPECT_EQ(g.wanted(0, {100 * MiB, 1, 100 * MiB, 1, 130 * MiB}), 30 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {130 * MiB, 2, 130 * MiB, 2, 130 * MiB}), 30 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {130 * MiB, 2, 130 * MiB, 2, 110 * MiB}), 10 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {30 * MiB, 3, 30 * MiB, 3, 0}), 0u);
}

TEST(Growth, a_reserved_but_not_yet_made_allocation_is_no_growth) {
  Growth g;
  EXPECT_EQ(g.wanted(0, {500 * MiB, 1, 500 * MiB, 1, 100 * MiB}), 0u);
}

TEST(Growth, a_single_change_between_the_readings_decides_nothing) {
  Growth g;  // The slice freed 1 GiB after the NVML sample.
  EXPECT_EQ(g.wanted(0, {1024 * MiB, 1, 0, 2, 1024 * MiB}), 0u);
  EXPECT_EQ(g.wanted(0, {0, 2, 0, 2, 0}), 0u);
}

TEST(Growth, restlessness_does_not_hide_it) {
  Growth g;
  uint64_t charged = 0;
  for (uint64_t i = 0; i < 5; ++i)
    charged = g.wanted(charged, {10 * MiB, i, 12 * MiB, i + 1, (50 + i) * MiB});
  EXPECT_EQ(charged, 38 * MiB);
}

TEST(Growth, scribbled_words_cannot_wrap_it) {
  Growth g;
  EXPECT_EQ(g.wanted(UINT64_MAX, {0, 1, 0, 1, 5}), 5u);
  EXPECT_EQ(g.wanted(7, {UINT64_MAX, 1, UINT64_MAX, 1, 5}), 0u);
}

}  // namespace
}  // namespace carve::node
