#include "guest/quota/charge.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

TEST(Reservation, is_released_unless_it_is_kept) {
  Attached slice(1, 100);
  {
    Reservation r(*slice.process, 0, 60_B);
    EXPECT_TRUE(r);
    EXPECT_EQ(slice.used(), 60u);
  }
  EXPECT_EQ(slice.used(), 0u);
}

TEST(Reservation, never_exceeds_the_quota_by_a_byte) {
  Attached slice(1, 100);
  Reservation most(*slice.process, 0, 99_B);
  EXPECT_FALSE(Reservation(*slice.process, 0, 2_B));
  EXPECT_TRUE(Reservation(*slice.process, 0, 1_B));
  EXPECT_FALSE(most.resize(101_B));
  EXPECT_EQ(slice.used(), 99u);
  EXPECT_TRUE(most.resize(100_B));
  EXPECT_TRUE(most.resize(7_B));
  EXPECT_EQ(slice.used(), 7u);
  EXPECT_FALSE(Reservation(*slice.process, 0, {UINT64_MAX}));
}

TEST(Reservation, is_refused_on_a_device_that_was_not_granted) {
  Attached slice(1, 100);
  EXPECT_FALSE(Reservation(*slice.process, 1, 0_B));
  EXPECT_FALSE(Reservation(*slice.process, not_granted, 1_B));
}

TEST(Reservation, is_counted_but_never_refused_without_a_limit) {
  Attached slice(1, 100);
  slice.control->devices[0].memory = shm::Memory::not_limited;
  Reservation r(*slice.process, 0, 5000_B);
  EXPECT_TRUE(r);
  EXPECT_EQ(slice.used(), 5000u);
  EXPECT_TRUE(Reservation(*slice.process, 0, {UINT64_MAX}));
}

TEST(Reservation, obeys_a_hint_only_if_it_lowers_the_quota) {
  Attached slice(1, 100);
  slice.process->hint[0] = 50;
  EXPECT_FALSE(Reservation(*slice.process, 0, 51_B));
  slice.process->hint[0] = 500;
  EXPECT_FALSE(Reservation(*slice.process, 0, 101_B));
}

TEST(Reservation, obeys_a_lowered_quota_from_the_next_call) {
  Attached slice(1, 100);
  Reservation r(*slice.process, 0, 80_B);
  slice.control->devices[0].quota = 40;
  EXPECT_FALSE(Reservation(*slice.process, 0, 1_B));
}

// The thread safety analysis does not count the locks that a loop takes.
void lock_all(LaneState (&lanes)[shm::lanes]) NO_THREAD_SAFETY_ANALYSIS {
  for (LaneState& lane : lanes) lane.lock.lock();
}
void unlock_all(LaneState (&lanes)[shm::lanes]) NO_THREAD_SAFETY_ANALYSIS {
  for (LaneState& lane : lanes) lane.lock.unlock();
}

// The thread has read the old quota but has not charged yet. It waits for a lane, because the test holds all
// lanes.
TEST(Reservation, does_not_exceed_a_quota_that_is_lowered_during_the_charge) {
  for (int round = 0; round < 100; ++round) {
    Attached slice(1, 100);
    Reservation small(*slice.process, 0, 30_B);
    lock_all(slice.process->lane[0]);
    std::atomic<bool> begun{false};
    bool allowed = true;
    std::jthread other([&] {
      begun = true;
      Reservation large(*slice.process, 0, 60_B);
      allowed = static_cast<bool>(large);
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    std::atomic_ref(slice.control->devices[0].quota).store(50);
    ASSERT_EQ(slice.used(), 30u) << "the agent finds that it may lower the quota";
    unlock_all(slice.process->lane[0]);
    other.join();
    ASSERT_FALSE(allowed);
    ASSERT_EQ(slice.used(), 30u);
  }
}

TEST(Charge, grows_and_shrinks_within_the_quota_once_it_is_kept) {
  Attached slice(1, 100);
  Charge charge = {0, 0, 0};
  EXPECT_TRUE(recharge(*slice.process, charge, 60_B));
  EXPECT_FALSE(recharge(*slice.process, charge, 101_B));
  EXPECT_EQ(charge.bytes, 60u);
  EXPECT_TRUE(recharge(*slice.process, charge, 10_B));
  EXPECT_EQ(slice.used(), 10u);
  recharge_truth(*slice.process, charge, 500_B);
  EXPECT_EQ(slice.used(), 500u) << "memory that is already taken is counted";
  EXPECT_FALSE(Reservation(*slice.process, 0, 1_B));
}

TEST(Spilled, bytes_have_their_own_budget) {
  Attached slice(1, 100);
  EXPECT_FALSE(may_spill(*slice.process, 0));
  EXPECT_FALSE(Reservation(*slice.process, spilled(0), 1_B));
  slice.control->devices[0].spill = 50;
  EXPECT_TRUE(may_spill(*slice.process, 0));
  {
    Reservation on_host(*slice.process, spilled(0), 50_B), on_device(*slice.process, 0, 100_B);
    EXPECT_TRUE(on_host);
    EXPECT_TRUE(on_device);
    EXPECT_EQ(slice.used(), 100u);
    EXPECT_EQ(used(*slice.process, spilled(0)), 50u);
    EXPECT_FALSE(Reservation(*slice.process, spilled(0), 1_B));
    EXPECT_TRUE(shm::reclaim(slice.report->spill, slice.process->slot)) << "as after the process was killed";
    EXPECT_EQ(used(*slice.process, spilled(0)), 0u);
  }
}

// The bytes are in the lanes of this process's slot, which the agent reclaims when the process is killed.
TEST(Reservation, by_many_threads_can_be_reclaimed_by_the_agent) {
  Attached slice(1, 1'000'000);
  std::vector<std::jthread> threads;
  std::atomic<uint64_t> kept{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 1; i < 2000; ++i) {
        Reservation r(*slice.process, 0, {i % 97});
        if (r && i % 3 == 0) {
          kept += r.charge().bytes;
          r.keep();
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(slice.used(), kept);
  EXPECT_TRUE(shm::reclaim(slice.report->charges, slice.process->slot));
  EXPECT_EQ(slice.used(), 0u);
}

constexpr uint64_t unit = shm::SpareWord::unit;

uint64_t word_of(const Attached& slice) { return shm::read(slice.report->charges.budget[0]).used; }

TEST(Reservation, keeps_spare_bytes_after_another_lanes_change_and_can_use_all_of_them) {
  Attached slice(1, 100 * unit);
  Reservation most(*slice.process, 0, {60 * unit});
  LaneState& mine = slice.process->lane[0][most.charge().lane];
  mine.lock.lock();  // The thread moves to the next lane.
  EXPECT_TRUE(Reservation(*slice.process, 0, {30 * unit}));
  mine.lock.unlock();
  EXPECT_EQ(word_of(slice), 90 * unit) << "the lane keeps spare bytes";
  EXPECT_EQ(slice.used(), 60 * unit);
  {
    Reservation again(*slice.process, 0, {30 * unit});
    EXPECT_NE(again.charge().lane, most.charge().lane) << "the thread keeps its lane";
    EXPECT_EQ(word_of(slice), 90 * unit) << "the word did not change";
    EXPECT_EQ(slice.used(), 90 * unit);
    EXPECT_TRUE(most.resize({70 * unit}));
    EXPECT_FALSE(most.resize({70 * unit + 1}));
  }
  EXPECT_TRUE(most.resize({100 * unit})) << "all bytes of the quota can be charged";
  EXPECT_FALSE(Reservation(*slice.process, 0, 1_B));
  EXPECT_TRUE(most.resize({unit}));
  EXPECT_EQ(slice.used(), unit);
}

TEST(Reservation, ignores_spare_bytes_when_a_quota_is_lowered) {
  Attached slice(1, 100 * unit);
  Reservation little(*slice.process, 0, {10 * unit});
  LaneState& mine = slice.process->lane[0][little.charge().lane];
  mine.lock.lock();
  EXPECT_TRUE(Reservation(*slice.process, 0, {60 * unit}));
  mine.lock.unlock();
  slice.control->devices[0].quota = 40 * unit;
  EXPECT_FALSE(Reservation(*slice.process, 0, {31 * unit})) << "although there are 60 spare units";
  EXPECT_TRUE(Reservation(*slice.process, 0, {30 * unit}));
}

// The test itself counts the threads' total, which never exceeds the quota.
TEST(Reservation, with_spare_bytes_never_exceeds_the_quota_when_threads_race) {
  constexpr uint64_t all = 1000 * unit;
  Attached slice(1, all);
  std::atomic<uint64_t> held{0}, refused{0};
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::optional<Reservation> live[4];
      uint64_t x = t + 1;
      for (int i = 0; i < 5000; ++i) {
        x = x * 6364136223846793005 + 1442695040888963407;
        const uint64_t bytes = x >> 56 == 0 ? x >> 45 : (x >> 40) % 400 * unit;
        std::optional<Reservation>& r = live[x >> 62];
        if (r) held -= r->charge().bytes;
        r.reset();
        r.emplace(*slice.process, 0, Bytes{bytes});
        if (!*r) ++refused;
        EXPECT_LE(held += r->charge().bytes, all);
      }
      for (const auto& r : live)
        if (r) held -= r->charge().bytes;
    });
  }
  threads.clear();
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(slice.used(), 0u);
  EXPECT_TRUE(Reservation(*slice.process, 0, {all})) << "all bytes of the quota can be charged";
  EXPECT_TRUE(shm::reclaim(slice.report->charges, slice.process->slot));
  EXPECT_EQ(word_of(slice), 0u);
}

// Another process of the slice overwrites the shared page. The figures are then wrong, but the process
// neither crashes nor hangs.
TEST(Reservation, survives_a_report_that_is_overwritten_with_garbage) {
  Attached slice(1, 1'000'000);
  std::atomic<bool> stop{false};
  std::jthread scribbler([&] {
    uint64_t x = 88172645463325252ull;
    auto* words = reinterpret_cast<uint64_t*>(&slice.report->charges);
    while (!stop) {
      for (size_t i = 0; i < sizeof(shm::Charges) / 8; i += 1 + x % 61) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        __atomic_store_n(&words[i], x, __ATOMIC_RELAXED);
      }
    }
  });
  for (int i = 0; i < 20'000; ++i) Reservation(*slice.process, 0, 10_B);
  stop = true;
}

}  // namespace
}  // namespace carve::guest
