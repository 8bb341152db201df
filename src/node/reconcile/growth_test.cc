#include "node/reconcile/growth.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr uint64_t MiB = 1 << 20;

TEST(Growth, is_what_the_driver_reports_beyond_the_charges) {
  Growth g;
  EXPECT_EQ(g.wanted(0, {100 * MiB, 1, 100 * MiB, 1, 100 * MiB}), 0u);
  EXPECT_EQ(g.wanted(0, {100 * MiB, 1, 100 * MiB, 1, 130 * MiB}), 30 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {130 * MiB, 2, 130 * MiB, 2, 130 * MiB}), 30 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {130 * MiB, 2, 130 * MiB, 2, 110 * MiB}), 10 * MiB);
  EXPECT_EQ(g.wanted(30 * MiB, {30 * MiB, 3, 30 * MiB, 3, 0}), 0u);
}

TEST(Growth, excludes_an_allocation_that_is_reserved_but_not_made_yet) {
  Growth g;
  EXPECT_EQ(g.wanted(0, {500 * MiB, 1, 500 * MiB, 1, 100 * MiB}), 0u);
}

TEST(Growth, is_not_decided_by_a_single_change_between_the_readings) {
  Growth g;  // The slice freed 1 GiB after the NVML sample.
  EXPECT_EQ(g.wanted(0, {1024 * MiB, 1, 0, 2, 1024 * MiB}), 0u);
  EXPECT_EQ(g.wanted(0, {0, 2, 0, 2, 0}), 0u);
}

TEST(Growth, is_found_in_a_slice_that_is_never_quiet) {
  Growth g;
  uint64_t charged = 0;
  for (uint64_t i = 0; i < 5; ++i)
    charged = g.wanted(charged, {10 * MiB, i, 12 * MiB, i + 1, (50 + i) * MiB});
  EXPECT_EQ(charged, 38 * MiB);
}

TEST(Growth, does_not_wrap_if_a_slice_writes_wrong_words) {
  Growth g;
  EXPECT_EQ(g.wanted(UINT64_MAX, {0, 1, 0, 1, 5}), 5u);
  EXPECT_EQ(g.wanted(7, {UINT64_MAX, 1, UINT64_MAX, 1, 5}), 0u);
}

}  // namespace
}  // namespace carve::node
