#include "wire/shm/budget.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <random>

namespace carve::shm {
namespace {

struct SharedMemory {
  Charges* charges = static_cast<Charges*>(
      mmap(nullptr, sizeof(Charges), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ~SharedMemory() { munmap(charges, sizeof(Charges)); }
};

struct Killed {};

// Throws at the n-th point at which a kill could happen.
struct DieAt {
  int* left;
  void operator()() const {
    if ((*left)-- == 0) throw Killed{};
  }
};

uint64_t sum(Charges& charges, unsigned device) {
  uint64_t total = holding(charges, {device, Tag::agent, 0});
  for (unsigned p = 0; p < max_processes; ++p)
    for (unsigned l = 0; l < lanes; ++l) total += holding(charges, {device, p, l});
  return total;
}

TEST(Budget, never_exceeds_its_limit_by_a_byte) {
  SharedMemory pages;
  EXPECT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 100, 100));
  EXPECT_FALSE(change(*pages.charges, {0, 2, 0}, 0, 1, 100));
  EXPECT_TRUE(change(*pages.charges, {0, 1, 0}, 100, 99, 100));
  EXPECT_TRUE(change(*pages.charges, {0, 2, 0}, 0, 1, 100));
  EXPECT_EQ(read(pages.charges->budget[0]).used, 100u);
  EXPECT_FALSE(change(*pages.charges, {0, 2, 0}, 1, UINT64_MAX, UINT64_MAX));
}

TEST(Budget, is_unchanged_by_a_refused_change) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 60, 100));
  ASSERT_FALSE(change(*pages.charges, {0, 1, 0}, 60, 120, 100));
  EXPECT_EQ(holding(*pages.charges, {0, 1, 0}), 60u);
  reclaim(*pages.charges, 1);
  EXPECT_EQ(read(pages.charges->budget[0]).used, 0u);
}

// Two processes alternate. One is killed at each point in turn, then the agent at each point while it
// releases the dead process's bytes. A second agent finishes.
TEST(Budget, loses_no_byte_if_a_process_is_killed_between_any_two_stores) {
  int kills = 0;
  for (bool shrink : {false, true}) {
    for (bool neighbour_writes_after : {false, true}) {
      for (int victim_at = 0; victim_at < 12; ++victim_at) {
        for (int agent_at = 0; agent_at < 40; ++agent_at) {
          SharedMemory pages;
          Charges& charges = *pages.charges;
          ASSERT_TRUE(change(charges, {0, 1, 0}, 0, 40, 1000));
          ASSERT_TRUE(change(charges, {0, 2, 0}, 0, 7, 1000));
          ASSERT_TRUE(change(charges, {0, 1, 0}, 40, 50, 1000));
          int left = victim_at;
          try {
            change(charges, {0, 1, 0}, 50, shrink ? 20 : 90, 1000, DieAt{&left});
          } catch (Killed) {
            ++kills;
          }
          uint64_t neighbour = 7;
          if (neighbour_writes_after) {
            ASSERT_TRUE(change(charges, {0, 2, 0}, 7, 9, 1000));
            neighbour = 9;
          }
          EXPECT_EQ(sum(charges, 0), read(charges.budget[0]).used);
          left = agent_at;
          try {
            reclaim(charges, 1, DieAt{&left});
          } catch (Killed) {
            ++kills;
          }
          reclaim(charges, 1);
          ASSERT_EQ(read(charges.budget[0]).used, neighbour)
              << "victim at " << victim_at << ", agent at " << agent_at << ", shrink " << shrink;
        }
      }
    }
  }
  EXPECT_GT(kills, 1000);
}

// Calls reclaim() as the agent does. While others write without pause, it may need several rounds.
bool reclaimed(Charges& charges, unsigned process) {
  for (int round = 0; round < 1000; ++round)
    if (reclaim(charges, process)) return true;
  return false;
}

// Several real processes write to one word and are killed. Afterwards every byte is accounted for.
TEST(Budget, is_exact_after_many_writers_were_killed) {
  SharedMemory pages;
  Charges& charges = *pages.charges;
  std::mt19937 random(42);
  constexpr uint64_t limit = 1 << 20;
  constexpr unsigned writers = 6;
  pid_t pids[writers] = {};
  const auto start = [&](unsigned slot) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::minstd_rand r(slot + 1 + static_cast<unsigned>(getpid()));
    uint64_t held = 0;
    for (;;) {
      const uint64_t next = r() % (limit / 4);
      if (change(charges, {0, slot, 0}, held, next, limit)) held = next;
      if (read(charges.budget[0]).used > limit) _exit(3);
    }
  };
  for (unsigned w = 0; w < writers; ++w) pids[w] = start(w);
  for (int round = 0; round < 150; ++round) {
    usleep(random() % 3000);
    const unsigned w = random() % writers;
    kill(pids[w], SIGKILL);
    int status = 0;
    waitpid(pids[w], &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a writer saw the budget above its limit";
    EXPECT_TRUE(reclaimed(charges, w));
    EXPECT_EQ(holding(charges, {0, w, 0}), 0u);
    pids[w] = start(w);
  }
  for (unsigned w = 0; w < writers; ++w) {
    kill(pids[w], SIGKILL);
    waitpid(pids[w], nullptr, 0);
    EXPECT_TRUE(reclaimed(charges, w));
  }
  EXPECT_EQ(read(charges.budget[0]).used, 0u);
}

// A slice that exchanges its own word without pause must not block the agent.
TEST(Budget, changing_without_pause_makes_the_agent_give_up) {
  SharedMemory pages;
  ASSERT_TRUE(change(*pages.charges, {0, 1, 0}, 0, 5, 100));
  int left = INT_MAX;
  auto hammer = [&] {
    --left;
    pages.charges->budget[0].used += 1;
  };
  EXPECT_FALSE(reclaim(*pages.charges, 1, hammer));
  EXPECT_LT(INT_MAX - left, 20'000);
  EXPECT_TRUE(reclaim(*pages.charges, 1));
}

TEST(Budget, overwritten_with_garbage_names_no_lane_and_crashes_no_process) {
  SharedMemory pages;
  std::mt19937_64 random(7);
  auto* words = reinterpret_cast<uint64_t*>(pages.charges);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = 0; i < 4096; ++i) words[i] = random();
    for (unsigned p : {0u, 1u, max_processes - 1, max_processes, 0xfffeu, Tag::agent}) {
      holding(*pages.charges, {0, p, 0});
      reclaim(*pages.charges, p, NoStops{});
    }
    record_change(*pages.charges, 0, Tag{random()});
  }
}

}  // namespace
}  // namespace carve::shm
