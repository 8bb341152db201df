#include "guest/linkage/ensure.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "guest/linkage/hook.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {
namespace {

// Counts failures here while it exists, and afterwards in the word that is used before an attach.
struct Counted {
  std::atomic<uint32_t> word{0};
  Counted() { publish_failures(word); }
  ~Counted() { ensure_failures = &failures_before_attach; }
};

TEST(Ensure, returns_the_condition_and_counts_it_if_it_does_not_hold) {
  Counted counted;
  EXPECT_TRUE(ensure(true));
  EXPECT_EQ(counted.word, 0u);
  EXPECT_FALSE(ensure(false));
  EXPECT_EQ(counted.word, 1u);
}

TEST(Ensure, publishes_the_failures_before_the_attach_once) {
  EXPECT_FALSE(ensure(false));
  EXPECT_FALSE(ensure(false));
  std::atomic<uint32_t> first{0}, second{0};
  publish_failures(first);
  EXPECT_EQ(first, 2u);
  publish_failures(second);
  EXPECT_EQ(second, 0u);
  ensure_failures = &failures_before_attach;
}

TEST(Ensure, keeps_a_charge_of_an_invalid_lane) {
  Counted counted;
  Attached slice(1, 100);
  Charge charge = Reservation(*slice.process, 0, 60_B).keep();
  charge.lane = shm::lanes;
  give_back(*slice.process, charge);
  EXPECT_EQ(slice.used(), 60u) << "the quota is not lifted";
  EXPECT_FALSE(recharge(*slice.process, charge, 80_B));
  EXPECT_EQ(counted.word, 2u);
}

TEST(Ensure, refuses_a_record_without_a_key) {
  Counted counted;
  Attached slice(1, 100);
  Record previous;
  EXPECT_FALSE(slice.process->allocations.put(record_of(0, 0, {}), &previous));
  EXPECT_EQ(counted.word, 1u);
}

// Returns 0 if, in a process that cannot map more memory, an entry point is not indexed and the failure is
// counted.
int index_without_memory() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_AS, &none);
  const int entry = 0;
  const bool indexed = index_hook(cuda_table.hooks.front(), &entry);
  return !indexed && failures_before_attach == 1 ? 0 : 1;
}

// Without the index of the driver's entry points, a program could get an address that bypasses a hook.
TEST(EnsureDeathTest, nothing_is_bound_without_memory_for_the_index_but_the_program_continues) {
  EXPECT_EXIT(_exit(index_without_memory()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace carve::guest
