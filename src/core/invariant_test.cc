#include "core/invariant.h"

#include <gtest/gtest.h>

#include <string>

namespace carve {
namespace {

constexpr unsigned half(unsigned even) {
  invariant(even % 2 == 0);
  return even / 2;
}
static_assert(half(4) == 2);  // A constexpr function may contain an invariant.

void take(int from, int amount) { invariant(amount <= from, "an account is never negative"); }

TEST(Invariant, that_holds_has_no_effect) {
  EXPECT_EQ(half(6), 3u);
  take(2, 2);
}

TEST(InvariantDeathTest, prints_file_line_function_and_condition_in_one_line) {
  volatile unsigned odd = 3;
  EXPECT_DEATH(half(odd),
               "^[^\n]*invariant_test\\.cc:[0-9]+: [^\n]*half[^\n]*: broken invariant: even % 2 == 0\n$");
}

TEST(InvariantDeathTest, appends_the_message_to_the_condition) {
  EXPECT_DEATH(take(1, 2), "broken invariant: amount <= from: an account is never negative\n$");
}

TEST(InvariantDeathTest, does_not_depend_on_NDEBUG_and_cuts_off_a_long_line) {
  const std::string longer(5000, 'x');
  EXPECT_EXIT(break_invariant(longer.c_str(), ""), testing::KilledBySignal(SIGABRT), "xxxx\n$");
}

}  // namespace
}  // namespace carve
