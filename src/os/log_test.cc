#include "os/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/user.h"

namespace carve::os {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

// The quota grows while the test runs, so the test compares the sum of written and left-out lines with the
// total.
TEST(Log, counts_the_lines_of_a_cause_beyond_its_quota_in_one_line) {
  constexpr uint64_t lines = 3 * EventBudgets::burst;
  testing::internal::CaptureStderr();
  for (uint64_t i = 0; i < lines; ++i) log::info(Cause{.who = "uid 1000"}, "request number {}", i);
  log::warning(Cause{.who = "uid 1001"}, "request of another user");
  log::write_left_out();
  log::write_left_out();
  const std::string text = testing::internal::GetCapturedStderr();
  const size_t written = count(text, " request number ");
  EXPECT_GE(written, EventBudgets::burst);
  EXPECT_EQ(count(text, " request of another user\n"), 1u);
  EXPECT_EQ(count(text, fmt::format(" uid 1000: {} more lines in the last ", lines - written)), 1u);
  EXPECT_EQ(count(text, "were not logged\n"), 1u) << "left-out lines are reported only once";
}

TEST(Log, has_no_quota_for_lines_without_a_cause) {
  constexpr uint64_t lines = 2 * EventBudgets::burst;
  testing::internal::CaptureStderr();
  for (uint64_t i = 0; i < lines; ++i) log::info("turn {}", i);
  EXPECT_EQ(count(testing::internal::GetCapturedStderr(), " turn "), lines);
}

TEST(Log, has_a_reserve_for_root_and_the_programs_own_user) {
  EXPECT_EQ(cause_of_user(0).who, "root");
  EXPECT_TRUE(cause_of_user(0).has_reserve);
  EXPECT_TRUE(cause_of_user(geteuid()).has_reserve);
  EXPECT_EQ(cause_of_user(4711).who, "uid 4711");
  EXPECT_FALSE(cause_of_user(4711).has_reserve);
}

}  // namespace
}  // namespace carve::os
