// Tests the steps at the time limit of a slice.
#include "node/pages/slice_deadline.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr int64_t s = os::second;

TEST(SliceDeadline, sends_sigterm_at_the_limit_and_ends_the_slice_after_the_grace_time) {
  SliceDeadline deadline{.limit_seconds = 60, .grace_seconds = 30, .at_ns = 100 * s};
  EXPECT_EQ(next_step(deadline, 40 * s).step, DeadlineStep::wait);
  EXPECT_EQ(next_step(deadline, 40 * s).wait_ns, 60 * s);
  EXPECT_EQ(next_step(deadline, 100 * s).step, DeadlineStep::warn);
  deadline.warned_ns = 100 * s;
  EXPECT_EQ(next_step(deadline, 100 * s).step, DeadlineStep::wait);
  EXPECT_EQ(next_step(deadline, 101 * s).wait_ns, 29 * s);
  EXPECT_EQ(next_step(deadline, 130 * s).step, DeadlineStep::end);
  EXPECT_EQ(next_step(deadline, 500 * s).step, DeadlineStep::end);
}

TEST(SliceDeadline, gives_the_whole_grace_time_after_a_late_sigterm) {
  SliceDeadline deadline{.limit_seconds = 60, .grace_seconds = 30, .at_ns = 100 * s};
  EXPECT_EQ(next_step(deadline, 1000 * s).step, DeadlineStep::warn);
  deadline.warned_ns = 1000 * s;
  EXPECT_EQ(next_step(deadline, 1029 * s).wait_ns, 1 * s);
}

TEST(SliceDeadline, ends_the_slice_with_sigterm_if_there_is_no_grace_time) {
  const SliceDeadline deadline{.limit_seconds = 60, .grace_seconds = 0, .at_ns = 5, .warned_ns = 7};
  EXPECT_EQ(next_step(deadline, 7).step, DeadlineStep::end);
}

TEST(SliceDeadline, shows_a_time_in_its_largest_whole_unit) {
  for (const auto& [seconds, text] : {std::pair{1U, "1s"}, std::pair{90U, "90s"}, std::pair{120U, "2m"},
                                      std::pair{7200U, "2h"}, std::pair{172800U, "2d"}, std::pair{0U, "0s"}})
    EXPECT_EQ(text_of_seconds(seconds), text);
}

}  // namespace
}  // namespace carve::node
