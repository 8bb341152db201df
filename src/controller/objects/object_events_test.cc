#include "controller/objects/object_events.h"

#include <gmock/gmock.h>

#include "controller/objects/journaled_registry.h"
#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum objects::EventReason;

struct EventJournalFake final : Journal, EventJournal {
  Outcome<void> write(std::span<const Object>) override { return {}; }
  Outcome<void> remove(const ObjectKey&, uint64_t) override { return {}; }
  Outcome<void> write(std::span<const KeptEvent> changed, std::span<const EventKey> removed) override {
    if (is_full) return failure(FailureKind::unavailable, "the disk is full");
    ++writes;
    for (const KeptEvent& event : changed) stored[event.key] = event;
    for (const EventKey& key : removed) stored.erase(key);
    return {};
  }
  std::vector<KeptEvent> all() const {
    std::vector<KeptEvent> out;
    for (const auto& [key, event] : stored) out.push_back(event);
    return out;
  }
  std::map<EventKey, KeptEvent> stored;
  bool is_full = false;
  unsigned writes = 0;
};

// Objects and their events over several restarts of the controller.
struct EventStage {
  EventJournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  std::optional<ObjectEvents> events{std::in_place, objects, journal, std::vector<KeptEvent>{}};
  const ObjectKey key{objects::Kind::service, "default", "a"};

  void restart() { events.emplace(objects, journal, journal.all()); }
  void add() {
    ASSERT_TRUE(objects.add({.key = key, .account = "root", .spec = objects::ServiceSpec{.replicas = 1}}));
  }
  void scale(uint32_t replicas) {
    ASSERT_TRUE(objects.update(key, [&](Object& object) -> Outcome<void> {
      object.spec = objects::ServiceSpec{.replicas = replicas};
      return {};
    }));
  }
};

KeptEvent kept_event(const ObjectKey& key, objects::EventReason reason, std::string message, uint64_t count,
                     int64_t first_ns, int64_t last_ns) {
  return {.key = {.object = key, .uid = "", .reason = reason},
          .message = std::move(message),
          .count = count,
          .first_ns = first_ns,
          .last_ns = last_ns};
}

TEST(ObjectEvents, count_a_repeated_reason_in_one_event_with_two_times) {
  EventStage stage;
  stage.add();
  stage.events->take_changes(10);
  stage.scale(2);
  stage.scale(3);
  stage.events->take_changes(20);
  stage.scale(4);
  stage.events->take_changes(30);
  EXPECT_THAT(stage.events->of(stage.key),
              ElementsAre(kept_event(stage.key, created, "1 replica, account root", 1, 10, 10),
                          kept_event(stage.key, scaled, "3 -> 4 replicas", 3, 20, 30)));
}

TEST(ObjectEvents, keep_their_counts_across_a_restart) {
  EventStage stage;
  stage.add();
  stage.scale(2);
  stage.events->take_changes(10);
  ASSERT_TRUE(stage.events->write());
  stage.restart();
  stage.scale(3);
  stage.events->take_changes(20);
  EXPECT_THAT(stage.events->of(stage.key),
              ElementsAre(kept_event(stage.key, created, "1 replica, account root", 1, 10, 10),
                          kept_event(stage.key, scaled, "2 -> 3 replicas", 2, 10, 20)));
}

// An object that is deleted and added again gets a new uid.
TEST(ObjectEvents, of_an_earlier_object_with_the_name_are_not_shown) {
  EventStage stage;
  for (const char* uid : {"u1", "u2"}) {
    ASSERT_TRUE(stage.objects.add({.key = stage.key, .account = "root", .uid = uid}));
    stage.events->take_changes(10);
    if (uid[1] == '1') {
      stage.scale(2);
      ASSERT_TRUE(stage.objects.remove(stage.key));
      stage.events->take_changes(20);
    }
  }
  const auto uids_of = [](const std::vector<KeptEvent>& events) {
    std::vector<std::string> out;
    for (const KeptEvent& event : events) out.push_back(event.key.uid);
    return out;
  };
  EXPECT_THAT(uids_of(stage.events->of(stage.key)), ElementsAre("u2"));
  stage.events->add(stage.key, {undone, "to revision 1"}, 25);
  EXPECT_THAT(uids_of(stage.events->of(stage.key)), ElementsAre("u2", "u2"));
  EXPECT_GT(stage.events->of_all_lives(stage.key).size(), 3u);
  ASSERT_TRUE(stage.events->write());
  stage.restart();
  EXPECT_THAT(uids_of(stage.events->of(stage.key)), ElementsAre("u2", "u2"));
  ASSERT_TRUE(stage.objects.remove(stage.key));
  stage.events->take_changes(30);
  EXPECT_THAT(uids_of(stage.events->of(stage.key)), ElementsAre("u2", "u2", "u2"))
      << "the latest object with the name";
}

// Databases with schema 6 had events without uids.
TEST(ObjectEvents, stored_without_a_uid_belong_to_the_current_object_unless_they_are_older) {
  EventStage stage;
  ASSERT_TRUE(stage.objects.add({.key = stage.key, .account = "root", .uid = "u1", .created_ns = 10}));
  for (const KeptEvent& event : {kept_event(stage.key, created, "1 replica", 2, 5, 10),
                                 kept_event(stage.key, scaled, "1 -> 2 replicas", 1, 12, 12)})
    stage.journal.stored[event.key] = event;
  stage.restart();
  const auto kept = stage.events->of(stage.key);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].message, "1 -> 2 replicas");
  ASSERT_TRUE(stage.events->write());
  EXPECT_EQ(stage.journal.stored.size(), 2u);
}

TEST(ObjectEvents, are_written_only_if_changed_and_a_failed_write_is_repeated) {
  EventStage stage;
  ASSERT_TRUE(stage.events->write());
  EXPECT_EQ(stage.journal.writes, 0u);
  stage.add();
  stage.events->take_changes(10);
  stage.journal.is_full = true;
  EXPECT_FALSE(stage.events->write());
  EXPECT_THAT(stage.journal.all(), IsEmpty());
  stage.journal.is_full = false;
  ASSERT_TRUE(stage.events->write());
  EXPECT_EQ(stage.journal.all(), stage.events->of(stage.key));
}

TEST(ObjectEvents, that_happened_longest_ago_are_dropped) {
  EventStage stage;
  const auto key_of_number = [](size_t number) {
    return ObjectKey{objects::Kind::service, "default", fmt::format("s{}", number)};
  };
  for (size_t i = 0; i < max_kept_events; ++i)
    stage.events->add(key_of_number(i), {created, "1 replicas"}, static_cast<int64_t>(i) + 1);
  ASSERT_TRUE(stage.events->write());
  stage.events->add(key_of_number(0), {created, "again"}, 50'000);
  stage.events->add(stage.key, {created, "one more"}, 60'000);
  ASSERT_TRUE(stage.events->write());
  EXPECT_EQ(stage.journal.stored.size(), max_kept_events);
  EXPECT_EQ(stage.events->of(key_of_number(0)).size(), 1u);
  EXPECT_THAT(stage.events->of(key_of_number(1)), IsEmpty());
  EXPECT_THAT(stage.events->newest("", 2),
              ElementsAre(kept_event(key_of_number(0), created, "again", 2, 1, 50'000),
                          kept_event(stage.key, created, "one more", 1, 60'000, 60'000)));
  EXPECT_THAT(stage.events->newest("other", 2), IsEmpty());
}

TEST(ObjectEvents, of_changes_that_the_registry_no_longer_keeps_are_left_out) {
  EventStage stage;
  stage.add();
  stage.events->take_changes(10);
  for (size_t i = 0; i <= max_kept_changes; ++i) stage.scale(2 + i % 2);
  stage.events->take_changes(20);
  EXPECT_EQ(stage.events->of(stage.key).size(), 1u);
  stage.scale(9);
  stage.events->take_changes(30);
  EXPECT_EQ(stage.events->of(stage.key).size(), 2u);
}

}  // namespace
}  // namespace carve::controller
