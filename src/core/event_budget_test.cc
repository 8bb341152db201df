#include "core/event_budget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace carve {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t second = 1'000'000'000;
const Cause loud{.who = "uid 1000"}, other{.who = "uid 1001"}, root{.who = "root", .has_reserve = true};

// Returns how many of the events are admitted.
uint64_t taken(EventBudgets& budgets, const Cause& cause, uint64_t events, int64_t now_ns) {
  uint64_t out = 0;
  for (uint64_t i = 0; i < events; ++i) out += budgets.take(cause, now_ns) ? 1 : 0;
  return out;
}

TEST(EventBudget, drops_events_beyond_a_burst_and_counts_them) {
  EventBudget budget;
  int64_t now = 5;
  for (uint64_t i = 0; i < EventBudget::default_burst; ++i) EXPECT_EQ(budget.take(now), 0u);
  EXPECT_FALSE(budget.take(now));
  EXPECT_FALSE(budget.take(now + EventBudget::default_interval_ns - 1));
  now += EventBudget::default_interval_ns;
  EXPECT_EQ(budget.take(now), 2u) << "the number of dropped events";
  EXPECT_FALSE(budget.take(now));
  now += 1'000'000 * EventBudget::default_interval_ns;
  for (uint64_t i = 0; i < EventBudget::default_burst; ++i) EXPECT_TRUE(budget.take(now)) << i;
  EXPECT_FALSE(budget.take(now)) << "a long pause does not save more than a burst";
  EXPECT_FALSE(budget.take(now - 100)) << "a clock that goes back does no harm";
}

TEST(EventBudget, is_full_until_an_event_and_again_after_a_pause) {
  EventBudget budget(2, second);
  EXPECT_TRUE(budget.is_full(second));
  budget.take(second);
  EXPECT_FALSE(budget.is_full(2 * second - 1));
  EXPECT_TRUE(budget.is_full(2 * second));
}

TEST(EventBudgets, give_each_cause_its_own_burst_and_count_its_dropped_events) {
  EventBudgets budgets;
  EXPECT_EQ(taken(budgets, loud, 5000, second), EventBudgets::burst);
  EXPECT_EQ(taken(budgets, other, 3, second), 3u);
  EXPECT_EQ(taken(budgets, loud, 10, 4 * second), 3u) << "one more event per second";
  EXPECT_THAT(budgets.take_left_out(4 * second), ElementsAre(EventBudgets::LeftOut{"uid 1000", 4007}));
  EXPECT_THAT(budgets.take_left_out(4 * second), IsEmpty()) << "each dropped event is counted only once";
}

TEST(EventBudgets, let_causes_without_a_reserve_share_a_budget_but_not_root) {
  EventBudgets budgets;
  uint64_t all = 0;
  for (int uid = 100'000; uid < 100'100; ++uid)
    all += taken(budgets, {.who = fmt::format("uid {}", uid)}, 2000, second);
  EXPECT_EQ(all, EventBudgets::burst * EventBudgets::causes_at_once);
  EXPECT_FALSE(budgets.take(other, second)) << "its own budget is full, but the shared budget is used up";
  EXPECT_EQ(taken(budgets, root, 2000, second), EventBudgets::burst);
}

TEST(EventBudgets, need_limited_memory_for_any_number_of_causes) {
  EventBudgets budgets;
  const auto flood = [&budgets](int64_t now_ns) {
    for (int uid = 0; uid < 10'000; ++uid) taken(budgets, {.who = fmt::format("uid {}", uid)}, 2, now_ns);
  };
  flood(second);
  EXPECT_TRUE(budgets.take(root, second)) << "a full table still admits a cause with a reserve";
  const auto left_out = budgets.take_left_out(second);
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].who, EventBudgets::others);
  flood(2 * second);
  EXPECT_LE(budgets.take_left_out(2 * second).size(), EventBudgets::max_causes + 1);
  budgets.take_left_out(10'000 * second);
  EXPECT_TRUE(budgets.take(loud, 10'000 * second)) << "causes without recent events are removed";
  EXPECT_EQ(taken(budgets, loud, 2000, 10'000 * second), EventBudgets::burst - 1);
}

}  // namespace
}  // namespace carve
