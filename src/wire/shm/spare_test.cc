#include "wire/shm/spare.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <map>
#include <random>

#include "wire/shm/budget.h"

namespace carve::shm {
namespace {

constexpr uint64_t unit = SpareWord::unit;

struct SharedMemory {
  Charges* charges = static_cast<Charges*>(
      mmap(nullptr, sizeof(Charges), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SharedMemory() {
    for (unsigned process = 0; process < 3; ++process) mark_spare(*charges, 0, process);
  }
  ~SharedMemory() { munmap(charges, sizeof(Charges)); }
  Spare& spare(unsigned process, unsigned lane = 0) { return charges->process[process].spare[0][lane]; }
  uint64_t word() const { return read(charges->budget[0]).used; }
  uint64_t used() const { return in_use(*charges, 0).bytes; }
};

TEST(Spare, bytes_do_not_count_as_used_and_can_be_used_again) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 10 * unit, 100 * unit));
  EXPECT_TRUE(add_spare(pages.spare(1), 4 * unit, 0));
  EXPECT_EQ(pages.word(), 10 * unit);
  EXPECT_EQ(pages.used(), 6 * unit);
  EXPECT_EQ(in_use_by(*pages.charges, {0, 1, 0}), 6 * unit);
  EXPECT_FALSE(take_spare(pages.spare(1), 5 * unit));
  EXPECT_TRUE(take_spare(pages.spare(1), 3 * unit));
  EXPECT_EQ(pages.used(), 9 * unit);
}

TEST(Spare, bytes_are_kept_in_whole_units_up_to_the_maximum) {
  SharedMemory pages;
  EXPECT_FALSE(add_spare(pages.spare(1), 1, 0));
  EXPECT_FALSE(take_spare(pages.spare(1), 1));
  EXPECT_FALSE(add_spare(pages.spare(1), max_spare + unit, 0));
  EXPECT_TRUE(add_spare(pages.spare(1), max_spare, 0));
  EXPECT_FALSE(add_spare(pages.spare(1), unit, 0));
  EXPECT_FALSE(add_spare(pages.spare(1), UINT64_MAX / unit * unit, 0));
}

TEST(Spare, bytes_of_other_lanes_are_withdrawn_only_as_far_as_the_limit_requires) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 60 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 20 * unit, 0));
  ASSERT_TRUE(change(*pages.charges, {0, 2, 0}, 0, 40 * unit, 100 * unit));
  EXPECT_EQ(SpareWord{pages.spare(1).word}.spare(), 20 * unit) << "the change fit without these bytes";
  EXPECT_FALSE(change(*pages.charges, {0, 2, 0}, 40 * unit, 60 * unit + 1, 100 * unit));
  EXPECT_TRUE(change(*pages.charges, {0, 2, 0}, 40 * unit, 60 * unit, 100 * unit))
      << "all bytes of the limit can be used";
  EXPECT_FALSE(change(*pages.charges, {0, 2, 0}, 60 * unit, 60 * unit + 1, 100 * unit));
  EXPECT_EQ(pages.used(), 100 * unit);
  EXPECT_EQ(pages.word(), 120 * unit) << "the withdrawn bytes are released by the next change of their lane";
  EXPECT_FALSE(take_spare(pages.spare(1), unit));
  EXPECT_FALSE(add_spare(pages.spare(1), unit, 0)) << "the lane has not returned all withdrawn bytes";
  Learned learned;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 60 * unit, 39 * unit, 100 * unit, NoStops{}, 1, &learned));
  EXPECT_TRUE(learned.other_writer);
  EXPECT_EQ(pages.word(), 99 * unit);
  EXPECT_EQ(pages.used(), 99 * unit);
  EXPECT_TRUE(add_spare(pages.spare(1), unit, learned.returned));
}

TEST(Spare, bytes_of_a_lane_count_towards_its_own_limit) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 100 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 30 * unit, 0));
  EXPECT_FALSE(change(*pages.charges, {0, 1, 0}, 100 * unit, 100 * unit + 1, 100 * unit));
  EXPECT_TRUE(change(*pages.charges, {0, 1, 0}, 100 * unit, 100 * unit, 100 * unit));
  EXPECT_EQ(pages.used(), 100 * unit);
}

// A lane that holds more than the limit, because the limit was lowered, may shrink but not grow.
TEST(Spare, bytes_allow_a_lane_above_the_limit_to_shrink_but_not_to_grow) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 100 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 30 * unit, 0));
  EXPECT_FALSE(change(*pages.charges, {0, 1, 0}, 100 * unit, 71 * unit, 50 * unit));
  EXPECT_EQ(pages.used(), 70 * unit);
  EXPECT_TRUE(change(*pages.charges, {0, 1, 0}, 100 * unit, 70 * unit, 50 * unit));
  EXPECT_EQ(pages.word(), 70 * unit);
}

TEST(Spare, bytes_of_a_dead_process_are_released_with_its_lanes) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 2}, 0, 60 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1, 2), 20 * unit, 0));
  ASSERT_TRUE(change(*pages.charges, {0, 2, 0}, 0, 55 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(2), unit, 0));
  ASSERT_TRUE(reclaim(*pages.charges, 1));
  EXPECT_EQ(pages.word(), 55 * unit);
  EXPECT_EQ(pages.used(), 54 * unit);
  // The next process in the slot begins with nothing.
  EXPECT_EQ(in_use_by(*pages.charges, {0, 1, 2}), 0u);
  EXPECT_FALSE(take_spare(pages.spare(1, 2), unit));
  ASSERT_TRUE(change(*pages.charges, {0, 1, 2}, 0, 46 * unit, 100 * unit));
  EXPECT_EQ(pages.used(), 100 * unit);
}

TEST(Spare, bytes_of_a_reused_slot_count_as_returned) {
  SharedMemory pages;
  Charges& c = *pages.charges;
  for (unsigned n = 1; n < 6; ++n) {  // So that either half of Spare::returned is the last one.
    mark_spare(c, 0, 1);
    ASSERT_TRUE(change(c, {0, 1, 0}, 0, 10 * unit, 100 * unit));
    ASSERT_TRUE(add_spare(pages.spare(1), 4 * unit, SpareWord{pages.spare(1).word}.withdrawn()));
    for (unsigned k = 0; k < n % 2; ++k) ASSERT_TRUE(change(c, {0, 1, 0}, 10 * unit, 10 * unit, 100 * unit));
    ASSERT_TRUE(reclaim(c, 1));
    EXPECT_FALSE(may_have_spare(c, 0, 1));
    EXPECT_EQ(pages.used(), 0u);
    ASSERT_TRUE(change(c, {0, 1, 0}, 0, 7 * unit, 100 * unit));
    mark_spare(c, 0, 1);
    EXPECT_EQ(pages.used(), 7 * unit) << n;
    ASSERT_TRUE(reclaim(c, 1));
  }
  EXPECT_EQ(SpareWord{pages.spare(1).word}.withdrawn(), 5 * 4u);
}

TEST(Spare, bytes_stay_correct_when_bytes_move_to_another_lane) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 60 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 20 * unit, 0));
  const LaneId block{0, Tag::first_block, 0};
  ASSERT_TRUE(move(*pages.charges, {{0, 1, 0}, 60 * unit, 10 * unit}, {block, 0, 30 * unit}));
  EXPECT_EQ(pages.used(), 40 * unit);
  EXPECT_EQ(pages.word(), 40 * unit);
}

TEST(Spare, version_changes_if_bytes_were_taken_and_added_in_the_meantime) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 60 * unit, 100 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 20 * unit, 0));
  const InUse before = in_use(*pages.charges, 0);
  ASSERT_TRUE(take_spare(pages.spare(1), 5 * unit));
  ASSERT_TRUE(add_spare(pages.spare(1), 5 * unit, 0));
  const InUse after = in_use(*pages.charges, 0);
  EXPECT_EQ(before.bytes, after.bytes);
  EXPECT_NE(before.version, after.version);
}

// Compares random operations of nine lanes with a model that only knows how much each lane uses. A charge
// succeeds exactly if the model has room.
TEST(Spare, bytes_never_change_what_fits_in_random_operations) {
  constexpr uint64_t limit = 1000 * unit;
  struct State {
    uint64_t recorded = 0, used = 0;
    uint32_t returned = 0;
  };
  int admitted = 0, refused = 0, taken = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SharedMemory pages;
    Charges& charges = *pages.charges;
    std::mt19937 random(seed);
    std::map<std::pair<unsigned, unsigned>, State> lanes_used;
    uint64_t all = 0;
    for (int step = 0; step < 600; ++step) {
      const unsigned process = random() % 3, lane = random() % 3;
      State& s = lanes_used[{process, lane}];
      Learned learned;
      if (random() % 4 == 0) mark_spare(charges, 0, process);
      const bool marked = may_have_spare(charges, 0, process);
      if (random() % 100 == 0) {
        ASSERT_TRUE(reclaim(charges, process));
        for (unsigned l = 0; l < lanes; ++l) {
          State& dead = lanes_used[{process, l}];
          all -= dead.used;
          dead = {};
        }
      } else if (random() % 2 == 0) {
        const uint64_t bytes = random() % 4 == 0 ? random() % (300 * unit) : random() % 300 * unit;
        if (marked && take_spare(pages.spare(process, lane), bytes)) {
          ++taken;
          s.used += bytes;
          all += bytes;
        } else {
          const bool fits = all + bytes <= limit;
          ASSERT_EQ(
              change(charges, {0, process, lane}, s.recorded, s.used + bytes, limit, NoStops{}, 1, &learned),
              fits || bytes == 0)
              << "seed " << seed << ", step " << step;
          if (fits) {
            s = {s.used + bytes, s.used + bytes, learned.returned};
            all += bytes;
          }
          ++(fits ? admitted : refused);
        }
      } else if (s.used != 0) {
        const uint64_t bytes = std::min<uint64_t>(s.used, random() % 4 * 100 * unit);
        s.used -= bytes;
        all -= bytes;
        if (!marked || !add_spare(pages.spare(process, lane), bytes, s.returned)) {
          ASSERT_TRUE(
              change(charges, {0, process, lane}, s.recorded, s.used, UINT64_MAX, NoStops{}, 1, &learned));
          s = {s.used, s.used, learned.returned};
        }
      }
      ASSERT_EQ(pages.used(), all) << "seed " << seed << ", step " << step;
    }
    for (unsigned process = 0; process < 3; ++process) ASSERT_TRUE(reclaim(charges, process));
    ASSERT_EQ(pages.word(), 0u);
  }
  EXPECT_GT(admitted, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000);
}

TEST(Spare, words_overwritten_with_garbage_crash_no_process) {
  SharedMemory pages;
  EXPECT_TRUE(reclaim(*pages.charges, max_processes)) << "a slot number beyond the last one";
  std::mt19937_64 random(3);
  auto* words = reinterpret_cast<uint64_t*>(pages.charges);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < 4096; ++i) words[i] = random();
    const InUse seen = in_use(*pages.charges, 0);
    EXPECT_LE(seen.bytes, read(pages.charges->budget[0]).used);
    change(*pages.charges, {0, 1, 0}, 5, 70, 100, NoStops{}, 3);
    reclaim(*pages.charges, 1);
  }
}

}  // namespace
}  // namespace carve::shm
