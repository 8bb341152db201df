#include "wire/shm/exports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace carve::shm {
namespace {

struct SharedMemory {
  std::unique_ptr<Exports> table = std::make_unique<Exports>();
  std::unique_ptr<Control> control = std::make_unique<Control>();
  SharedMemory() {
    for (unsigned slot : {3u, 4u}) control->processes[slot] = {100 + slot, 0, 0, 0, 1, 0};
  }
};

TEST(Exports, contain_only_the_published_objects) {
  SharedMemory p;
  std::mt19937_64 random(5);
  std::vector<uint64_t> mine, others;
  for (int i = 0; i < 500; ++i) mine.push_back(random()), others.push_back(random());
  for (uint64_t id : mine) publish(*p.table, *p.control, 3, id);
  for (uint64_t id : mine) EXPECT_EQ(origin_of(*p.table, *p.control, id), Origin::own);
  for (uint64_t id : others) EXPECT_EQ(origin_of(*p.table, *p.control, id), Origin::foreign);
}

TEST(Exports, are_unknown_if_an_entry_may_have_been_lost) {
  SharedMemory p;
  for (uint64_t i = 1; i <= export_ways; ++i) publish(*p.table, *p.control, 3, (i << 30) * export_sets);
  EXPECT_EQ(origin_of(*p.table, *p.control, (uint64_t{77} << 30) * export_sets), Origin::cannot_be_told);
  EXPECT_EQ(origin_of(*p.table, *p.control, 1), Origin::foreign) << "another set";
}

TEST(Exports, of_a_dead_process_count_until_their_entries_are_reused) {
  SharedMemory p;
  const auto id = [](uint64_t i) { return (i << 30) * export_sets; };
  for (uint64_t i = 1; i <= export_ways; ++i) publish(*p.table, *p.control, 3, id(i));
  p.control->processes[3].pid = 0;
  EXPECT_EQ(origin_of(*p.table, *p.control, id(1)), Origin::own) << "the descriptor may outlive its process";
  EXPECT_EQ(origin_of(*p.table, *p.control, id(20)), Origin::foreign);
  p.control->processes[3] = {999, 0, 0, 0, 2, 0};  // Another process has the slot now.
  for (uint64_t i = 11; i < 11 + export_ways; ++i) publish(*p.table, *p.control, 4, id(i));
  for (uint64_t i = 11; i < 11 + export_ways; ++i)
    EXPECT_EQ(origin_of(*p.table, *p.control, id(i)), Origin::own);
  EXPECT_NE(origin_of(*p.table, *p.control, id(1)), Origin::own);
}

TEST(Exports, take_only_one_entry_if_published_again) {
  SharedMemory p;
  for (int i = 0; i < 50; ++i) publish(*p.table, *p.control, 3, 1 << 20);
  int entries = 0;
  for (auto& word : p.table->word[0]) entries += word.load() != 0;
  EXPECT_EQ(entries, 1);
}

TEST(Exports, overwritten_with_garbage_crash_no_process) {
  SharedMemory p;
  std::mt19937_64 random(9);
  for (auto& set : p.table->word)
    for (auto& word : set) word = random();
  for (int i = 0; i < 10'000; ++i) {
    origin_of(*p.table, *p.control, random());
    publish(*p.table, *p.control, 3, random());
  }
}

TEST(Identity, depends_on_every_byte) {
  std::vector<uint64_t> seen;
  for (int at = 0; at < 16; ++at) {
    for (int value = 1; value < 256; value += 51) {
      unsigned char bytes[16] = {};
      bytes[at] = static_cast<unsigned char>(value);
      seen.push_back(identity_of(bytes, sizeof bytes));
    }
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

}  // namespace
}  // namespace carve::shm
