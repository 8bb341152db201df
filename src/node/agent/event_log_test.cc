#include "node/agent/event_log.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t generation = 70;

EventLog log_of(size_t events) {
  EventLog log(generation);
  for (size_t i = 1; i <= events; ++i) log.add({static_cast<int64_t>(i), "a", fmt::format("event {}", i)});
  return log;
}

TEST(EventLog, keeps_the_newest_1000_events_and_numbers_them_from_1) {
  const EventLog log = log_of(max_events + 234);
  EXPECT_EQ(log.size(), max_events);
  uint64_t number = 235;
  for (const Event& e : log) {
    EXPECT_EQ(e.number, number);
    EXPECT_EQ(e.text, fmt::format("event {}", number));
    ++number;
  }
  EXPECT_EQ(log.id(*log.begin()), "70-235");
}

TEST(EventLog, does_not_drop_events_of_others_for_one_user_with_many) {
  EventLog log(generation);
  log.add({1, "", "the agent's"});
  log.add({2, "b", "of another user", 2000});
  for (size_t i = 0; i < 3 * max_events; ++i) log.add({3, "a", "of the loud user", 1000});
  EXPECT_EQ(log.size(), max_events);
  EXPECT_EQ(log.begin()->text, "the agent's");
  EXPECT_EQ(std::next(log.begin())->text, "of another user");
  EXPECT_EQ(std::next(log.begin(), 2)->number, 2 * max_events + 5)
      << "the oldest event of the loud user was dropped";
  EXPECT_EQ(log.last_seen("2").error().kind, FailureKind::gone) << "events after it are missing";
  EXPECT_EQ(log.last_seen(fmt::format("{}", 2 * max_events + 4)).value(), 2 * max_events + 4);
}

TEST(EventLog, returns_the_number_after_which_a_watch_continues) {
  const struct {
    size_t events;
    const char* id;
    std::optional<uint64_t> seen;
    std::optional<FailureKind> refused;
  } rows[] = {
      {0, "", 0, {}},
      {5, "", 0, {}},
      {5, "0", 0, {}},
      {5, "3", 3, {}},
      {5, "70-3", 3, {}},
      {5, "70-5", 5, {}},
      {5, "70-6", {}, FailureKind::invalid_argument},
      {5, "6", {}, FailureKind::invalid_argument},
      {5, "71-900", 0, {}},  // From another agent: all events of this one are newer.
      {0, "69-3", 0, {}},
      {max_events, "70-0", 0, {}},
      {max_events + 1, "", 0, {}},
      {max_events + 1, "0", 0, {}},
      {max_events + 1, "70-1", 1, {}},
      {max_events + 1, "70-0", {}, FailureKind::gone},
      {max_events + 1, "69-999", {}, FailureKind::gone},
      {max_events + 9, "8", {}, FailureKind::gone},
      {max_events + 9, "9", 9, {}},
      {5, "x", {}, FailureKind::invalid_argument},
      {5, "-", {}, FailureKind::invalid_argument},
      {5, "70-", {}, FailureKind::invalid_argument},
      {5, "-3", {}, FailureKind::invalid_argument},
      {5, "70-3-1", {}, FailureKind::invalid_argument},
      {5, "70-99999999999999999999", {}, FailureKind::invalid_argument},
  };
  for (const auto& row : rows) {
    const auto seen = log_of(row.events).last_seen(row.id);
    ASSERT_EQ(seen.has_value(), row.seen.has_value()) << row.id;
    if (seen) {
      EXPECT_EQ(*seen, *row.seen) << row.id;
    } else {
      EXPECT_EQ(seen.error().kind, *row.refused) << row.id << ": " << seen.error().message;
    }
  }
  EXPECT_THAT(log_of(max_events + 9).last_seen("8").error().message,
              HasSubstr("the oldest that is kept is 70-10"));
}

TEST(EventLog, calls_its_subscribers_until_they_unsubscribe) {
  EventLog log = log_of(3);
  std::vector<uint64_t> first, second;
  auto one = log.subscribe([&](const Event& e) { first.push_back(e.number); });
  auto two = log.subscribe([&](const Event& e) { second.push_back(e.number); });
  log.add({4, "", "x"});
  one.reset();
  log.add({5, "", "y"});
  EXPECT_THAT(first, ElementsAre(4));
  EXPECT_THAT(second, ElementsAre(4, 5));
}

TEST(EventLog, allows_subscribers_to_end_subscriptions_add_events_and_subscribe) {
  EventLog log = log_of(0);
  std::vector<uint64_t> seen, late;
  std::shared_ptr<void> self, other, added;
  self = log.subscribe([&](const Event& e) {
    seen.push_back(e.number);
    self.reset();
    other.reset();
    log.add({2, "", "inner"});
    added = log.subscribe([&](const Event& inner) { late.push_back(inner.number); });
  });
  other = log.subscribe([&](const Event&) { FAIL() << "called after its end"; });
  log.add({1, "", "outer"});
  log.add({3, "", "last"});
  EXPECT_THAT(seen, ElementsAre(1));
  EXPECT_THAT(late, ElementsAre(3));
}

TEST(EventLog, may_be_destroyed_before_its_subscriptions) {
  std::shared_ptr<void> subscription;
  {
    EventLog log = log_of(1);
    subscription = log.subscribe([](const Event&) {});
  }
  subscription.reset();
}

TEST(EventLog, an_event_has_the_caller_of_the_request_that_caused_it) {
  EventLog log(1);
  {
    const auto acting = log.acting("uid 1000");
    log.add({.utc_ns = 1, .slice = "a", .text = "granted"});
  }
  log.add({.utc_ns = 2, .slice = "a", .text = "ended"});
  EXPECT_EQ(log.begin()->caller, "uid 1000");
  EXPECT_EQ((log.begin() + 1)->caller, "");
}

}  // namespace
}  // namespace carve::node
