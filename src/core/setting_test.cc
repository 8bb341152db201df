#include "core/setting.h"

#include <gmock/gmock.h>

#include <random>

namespace carve {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

TEST(Setting, takes_effect_immediately_without_holders) {
  const auto s = wanted(Setting<int>{1, 1, {}}, 2, {});
  EXPECT_EQ(s, (Setting<int>{2, 2, {}}));
}

TEST(Setting, waits_for_the_last_holder_and_names_the_holders) {
  auto s = wanted(Setting<int>{1, 1, {}}, 2, {"a", "b"});
  EXPECT_EQ(s.effective, 1);
  EXPECT_THAT(s.blocked_by, ElementsAre("a", "b"));
  s = settled(s, {"b"});
  EXPECT_EQ(s.effective, 1);
  EXPECT_THAT(s.blocked_by, ElementsAre("b"));
  s = settled(s, {});
  EXPECT_EQ(s, (Setting<int>{2, 2, {}}));
}

TEST(Setting, cancels_a_pending_change_if_set_to_the_effective_value) {
  auto s = wanted(Setting<int>{1, 1, {}}, 2, {"a"});
  s = wanted(s, 1, {"a"});
  EXPECT_EQ(s, (Setting<int>{1, 1, {}}));
}

TEST(Setting, takes_the_last_of_several_changes) {
  auto s = wanted(Setting<int>{1, 1, {}}, 2, {"a"});
  s = wanted(s, 3, {"a"});
  EXPECT_EQ(settled(s, {}).effective, 3);
}

// In any order of calls, no effective value changes while it has a holder, and blocked_by lists exactly the
// holders.
TEST(Setting, never_changes_while_it_has_a_holder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Setting<int> s;
    Names holders;
    for (int step = 0; step < 100; ++step) {
      const Setting<int> before = s;
      switch (random() % 3) {
        case 0: s = wanted(s, static_cast<int>(random() % 3), holders); break;
        case 1: holders.push_back(std::to_string(step)); [[fallthrough]];
        default:
          if (random() % 2 != 0 && !holders.empty()) holders.pop_back();
          s = settled(s, holders);
      }
      ASSERT_TRUE(holders.empty() || s.effective == before.effective);
      ASSERT_TRUE(!holders.empty() || !s.pending());
      ASSERT_EQ(s.blocked_by, s.pending() ? holders : Names{});
    }
  }
}

}  // namespace
}  // namespace carve
