#include "ledger/truth.h"

#include <gmock/gmock.h>

#include <random>

#include "ledger/memory_store.h"

namespace carve::ledger {
namespace {

using testing::HasSubstr;

const Stamp now{1'000, "boot", 10};

Device device(unsigned index, Bytes native = 16_GiB) {
  Device d;
  d.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.index = index;
  d.name = "A10";
  d.native = native;
  d.reserved = 1_GiB;
  return d;
}

Use holding(uint64_t id, std::string name, unsigned on, Bytes memory) {
  Use use;
  use.id = id;
  use.what.name = std::move(name);
  use.what.parts = {{device(on).uuid, memory, {1000}, {}}};
  use.from = now;
  return use;
}

// Two devices; "a" holds 4 GiB of the first, "b" 6 GiB of the second.
Ledger book() {
  Ledger ledger;
  for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(ledger.apply(*ledger.see(device(i))));
  EXPECT_TRUE(ledger.apply(Granted{holding(1, "a", 0, 4_GiB)}));
  EXPECT_TRUE(ledger.apply(Granted{holding(2, "b", 1, 6_GiB)}));
  return ledger;
}

Observed in_agreement() {
  Observed seen;
  seen.boot_id = "boot";
  seen.devices = {device(0), device(1)};
  seen.pages = {{"a", holding(1, "a", 0, 4_GiB)}, {"b", holding(2, "b", 1, 6_GiB)}};
  seen.inhabited = {1, 2};
  return seen;
}

TEST(Truth, a_book_that_is_right_is_left_alone) {
  EXPECT_TRUE(disagreements(book(), in_agreement(), now).empty());
}

TEST(Truth, each_disagreement_has_a_name_a_direction_and_a_sentence) {
  struct Row {
    Difference difference;
    Direction direction;
    const char* sentence;
    void (*spoil)(Observed&);
  };
  const Row rows[] = {
      {Difference::device_unknown, Direction::to_truth, "device 2 (GPU-03",
       [](Observed& o) { o.devices.push_back(device(2)); }},
      {Difference::device_resized, Direction::to_truth, "it has 16 GiB, and the driver shows 20 GiB",
       [](Observed& o) { o.devices[0] = device(0, 20_GiB); }},
      {Difference::device_too_small, Direction::nobody, "slices hold 4 GiB of it: nothing is changed",
       [](Observed& o) { o.devices[0] = device(0, 3_GiB); }},
      {Difference::device_gone, Direction::nobody, "1 slices hold of it, and the driver does not show it",
       [](Observed& o) { o.devices.pop_back(); }},
      {Difference::use_over, Direction::to_truth,
       "slice b: the ledger says it lives, and its last process ended while the agent was away: it is ended",
       [](Observed& o) { o.inhabited->erase(2), o.pages.pop_back(); }},
      {Difference::use_over, Direction::to_truth, "the machine was started anew",
       [](Observed& o) { o.boot_id = "next boot", o.inhabited->erase(2), o.pages.pop_back(); }},
      {Difference::pages_differ, Direction::to_book, "its note tells of 7 GiB",
       [](Observed& o) { o.pages[0].use->what.parts[0].memory = 7_GiB; }},
      {Difference::pages_differ, Direction::to_book, "those of an earlier slice",
       [](Observed& o) { o.pages[0].use->id = 9; }},
      {Difference::pages_stale, Direction::to_book, "slice c: the ledger says there is no living slice",
       [](Observed& o) {
         o.pages.push_back({"c", {}});
       }},
      {Difference::device_differs, Direction::to_truth,
       "number 0, A10, 1 GiB of it kept back, and it is number 0, A10, 2 GiB",
       [](Observed& o) { o.devices[0].reserved = 2_GiB; }},
      {Difference::device_differs, Direction::to_truth, "it is number 5",
       [](Observed& o) { o.devices[0].index = 5; }},
  };
  for (const Row& row : rows) {
    Observed seen = in_agreement();
    row.spoil(seen);
    const auto list = disagreements(book(), seen, now);
    ASSERT_FALSE(list.empty()) << row.sentence;
    EXPECT_EQ(list[0].difference, row.difference) << row.sentence;
    EXPECT_EQ(list[0].direction, row.direction) << row.sentence;
    EXPECT_THAT(sentence(list[0]), HasSubstr(row.sentence));
    EXPECT_EQ(list[0].change.has_value(), row.direction == Direction::to_truth) << row.sentence;
  }
}

// The size is settled first; what is kept back of it changes only when it is known who lives, as a second
// step.
TEST(Truth, a_device_of_another_size_keeps_the_reserve_of_the_book_as_far_as_it_has_it) {
  struct Row {
    Bytes native, reserve;  // As the driver shows it, and as it is to be.
    Bytes kept;             // By the first step.
  };
  for (const Row& row :
       {Row{20_GiB, 2_GiB, 1_GiB}, Row{20_GiB, {}, 1_GiB}, Row{{512 << 20}, {}, {512 << 20}}}) {
    Ledger ledger;
    ASSERT_TRUE(ledger.apply(*ledger.see(device(0))));
    Observed seen;
    seen.devices = {device(0, row.native)};
    seen.devices[0].reserved = row.reserve;
    for (const bool looked : {false, true}) {
      if (looked) seen.inhabited.emplace();
      const auto list = disagreements(ledger, seen, now);
      ASSERT_EQ(list.size(), looked ? 2u : 1u);
      EXPECT_EQ(list[0].difference, Difference::device_resized);
      EXPECT_EQ(std::get<DeviceSeen>(list[0].change.value()).device.reserved, row.kept);
      if (!looked) continue;
      EXPECT_EQ(list[1].difference, Difference::device_differs);
      EXPECT_EQ(std::get<DeviceSeen>(list[1].change.value()).device.reserved, row.reserve);
    }
  }
}

TEST(Truth, a_lost_book_is_written_again_from_the_notes_as_far_as_they_can_be_true) {
  Observed seen = in_agreement();
  seen.book_lost = true;
  seen.pages.push_back({"much", holding(3, "much", 1, 12_GiB)});  // No room beside "b".
  seen.pages.push_back({"d", holding(4, "another", 0, 1_GiB)});   // Its note is another's.
  seen.pages.push_back({"e", {}});
  Ledger ledger;
  std::vector<Difference> kinds;
  for (const Disagreement& d : disagreements(ledger, seen, now)) {
    kinds.push_back(d.difference);
    if (d.change) {
      ASSERT_TRUE(ledger.apply(*d.change)) << sentence(d);
    }
  }
  using D = Difference;
  EXPECT_THAT(kinds, testing::ElementsAre(D::device_unknown, D::device_unknown, D::use_lost, D::use_lost,
                                          D::use_unreadable, D::use_unreadable, D::pages_stale,
                                          D::device_differs, D::device_differs));
  EXPECT_EQ(ledger.living(), book().living());
  EXPECT_EQ(ledger.balances().at(device(0).uuid).free, 11_GiB);
}

// Any book beside any world: the changes can be posted in their order, the book stays balanced and holds
// nothing that nobody lives in, and what is left to say afterwards needs no change.
TEST(Truth, posting_the_changes_leaves_nothing_to_change) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    std::mt19937 dice(seed);
    Ledger ledger;
    const auto size = [&] { return Bytes{(dice() % 12 + 1ull) << 30}; };
    for (unsigned i = 0; i < dice() % 4; ++i)
      ASSERT_TRUE(ledger.apply(*ledger.see(device(i, {size().count + (2ull << 30)}))));
    for (uint64_t id = 1; id < 6; ++id)
      (void)ledger.apply(
          Granted{holding(id, std::string(1, static_cast<char>('a' + id)), dice() % 4, size())});
    Observed seen;
    seen.boot_id = dice() % 2 == 0 ? "boot" : "next boot";
    seen.book_lost = dice() % 3 == 0;
    for (unsigned i = 0; i < 4; ++i) {
      if (dice() % 4 == 0) continue;
      seen.devices.push_back(device(i, {size().count + (2ull << 30)}));
      seen.devices.back().index = dice() % 8;
    }
    for (char name = 'a'; name < 'h'; ++name) {
      if (dice() % 2 == 0) continue;
      seen.pages.push_back({std::string(1, name), {}});
      if (dice() % 4 != 0)
        seen.pages.back().use =
            holding(dice() % 8, std::string(1, dice() % 8 == 0 ? 'x' : name), dice() % 4, size());
    }
    // As the agent does: first what can be said before anybody was looked for, then all.
    const auto carried_out = [&] {
      std::set<std::string> removed;
      for (const Disagreement& d : disagreements(ledger, seen, now)) {
        ASSERT_EQ(d.change.has_value(), d.direction == Direction::to_truth) << sentence(d);
        if (d.change) {
          ASSERT_TRUE(ledger.apply(*d.change)) << sentence(d);
        }
        ASSERT_TRUE(ledger.balanced());
        if (d.difference == Difference::pages_stale || d.difference == Difference::use_unreadable)
          removed.insert(d.name);
      }
      std::erase_if(seen.pages, [&](const Pages& p) { return removed.contains(p.name); });
    };
    carried_out();
    seen.inhabited.emplace();
    for (const auto& [id, use] : ledger.living())
      if (dice() % 2 == 0) seen.inhabited->insert(id);
    carried_out();
    for (const auto& [id, use] : ledger.living()) EXPECT_TRUE(seen.inhabited->contains(id));
    for (const Disagreement& d : disagreements(ledger, seen, now)) {
      EXPECT_FALSE(d.change) << "seed " << seed << ": " << sentence(d);
      EXPECT_NE(d.difference, Difference::pages_stale);
    }
  }
}

}  // namespace
}  // namespace carve::ledger
