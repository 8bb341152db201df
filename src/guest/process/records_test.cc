#include "guest/process/records.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/mman.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace carve::guest {
namespace {

struct RecordTable {
  Records* records = static_cast<Records*>(
      mmap(nullptr, sizeof(Records), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ~RecordTable() { munmap(records, sizeof(Records)); }
};

TEST(Records, can_be_taken_only_once) {
  RecordTable t;
  Record previous, taken;
  ASSERT_TRUE(t.records->put(record_of(0x7000, 9, {4096, 1, 2}), &previous));
  EXPECT_EQ(previous.key, 0u);
  ASSERT_TRUE(t.records->take(0x7000, &taken));
  EXPECT_EQ(taken.charge(), (Charge{4096, 1, 2}));
  EXPECT_FALSE(t.records->take(0x7000, &taken));
}

TEST(Records, return_the_earlier_record_if_a_key_is_put_twice) {
  RecordTable t;
  Record previous;
  ASSERT_TRUE(t.records->put(record_of(7, 1, {100, 0, 0}), &previous));
  ASSERT_TRUE(t.records->put(record_of(7, 1, {200, 0, 0}), &previous));
  EXPECT_EQ(previous.bytes, 100u);
}

// Compares with a std::map over a long random history. The pointers are spaced like a driver's.
TEST(Records, agree_with_a_map_over_a_long_history) {
  for (const uint64_t spacing : {512ull, 2ull << 20, 1ull}) {
    RecordTable t;
    std::map<uint64_t, uint64_t> model;
    std::mt19937_64 random(spacing);
    for (int step = 0; step < 60'000; ++step) {
      const uint64_t key = 0x7f00'0000'0000 + random() % 8000 * spacing;
      Record r;
      if (random() % 2 != 0) {
        ASSERT_TRUE(t.records->put(record_of(key, random() % 4, {key ^ 5, 0, 0}), &r));
        ASSERT_EQ(r.key != 0, model.contains(key));
        model[key] = key ^ 5;
      } else {
        ASSERT_EQ(t.records->take(key, &r), model.erase(key) == 1);
      }
    }
    for (const auto& [key, bytes] : model) {
      Record r;
      ASSERT_TRUE(t.records->take(key, &r));
      ASSERT_EQ(r.bytes, bytes);
    }
  }
}

TEST(Records, of_one_context_are_removed_together_and_the_others_stay) {
  RecordTable t;
  Record r;
  for (uint64_t key = 1; key <= 20'000; ++key)
    ASSERT_TRUE(t.records->put(record_of(key << 9, key % 3, {key, 0, 0}), &r));
  int gone = 0;
  t.records->take_all_of(1, [&](const Record& record) {
    EXPECT_EQ(record.context, 1u);
    ++gone;
  });
  EXPECT_EQ(gone, 6667);
  for (uint64_t key = 1; key <= 20'000; ++key) EXPECT_EQ(t.records->take(key << 9, &r), key % 3 != 1) << key;
}

TEST(Records, are_removed_with_their_last_use) {
  RecordTable t;
  Record r;
  ASSERT_TRUE(t.records->put(record_of(7, 1, {100, 0, 0}), &r));
  ASSERT_TRUE(t.records->use(7, 2, &r));
  EXPECT_EQ(r.uses, 3u);
  ASSERT_TRUE(t.records->find(7, &r));
  EXPECT_EQ(r.uses, 3u);
  ASSERT_TRUE(t.records->use(7, -3, &r));
  EXPECT_EQ(r.uses, 0u);
  EXPECT_FALSE(t.records->find(7, &r));
  EXPECT_FALSE(t.records->use(7, 1, &r));
}

// Returns the resident memory of this process, in bytes.
size_t resident() {
  size_t pages = 0, total = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (f == nullptr || fscanf(f, "%zu %zu", &total, &pages) != 2) pages = 0;
  if (f != nullptr) fclose(f);
  return pages * 4096;
}

// The thread sanitizer keeps four shadow bytes for each byte of memory.
#ifdef __SANITIZE_THREAD__
constexpr uint64_t shadow = 5;
#else
constexpr uint64_t shadow = 1;
#endif

TEST(Records, take_less_than_100_bytes_each_and_release_their_memory) {
  constexpr uint64_t count = 400'000;
  RecordTable t;
  Record r;
  const size_t before = resident();
  for (uint64_t key = 1; key <= count; ++key) ASSERT_TRUE(t.records->put(record_of(key << 9, 1, {}), &r));
  EXPECT_LT(resident() - before, count * 100 * shadow);
  for (uint64_t key = 1; key <= count - 100; ++key) ASSERT_TRUE(t.records->take(key << 9, &r));
  EXPECT_LT(resident(), before + (1 << 20));
  for (uint64_t key = count - 99; key <= count; ++key) EXPECT_TRUE(t.records->find(key << 9, &r));
  for (uint64_t key = 1; key <= count; ++key) ASSERT_TRUE(t.records->put(record_of(key << 9, 5, {}), &r));
  uint64_t gone = 0;
  t.records->take_all_of(5, [&](const Record&) { ++gone; });
  EXPECT_EQ(gone, count);
  EXPECT_LT(resident(), before + (1 << 20));
}

TEST(Records, are_not_lost_when_threads_race) {
  RecordTable t;
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Record r;
      for (int round = 0; round < 20; ++round) {
        for (uint64_t i = 1; i < 500; ++i)
          wrong += !t.records->put(record_of(i * 2048 + thread * 512, 0, {i, 0, 0}), &r);
        for (uint64_t i = 1; i < 500; ++i)
          wrong += !t.records->take(i * 2048 + thread * 512, &r) || r.bytes != i;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace carve::guest
