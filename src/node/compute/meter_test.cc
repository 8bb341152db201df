#include "node/compute/meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace carve::node {
namespace {

using share::ms, share::us, share::Ns;

// The pages of a slice, written as the guest library writes them.
struct SharedMemory {
  std::unique_ptr<shm::ProcessWork[]> work{new shm::ProcessWork[4]()};
  std::vector<unsigned> slots{0};
  Meter meter;
  Ns now = 5 * share::second;

  SharedMemory() { read(0); }
  share::Observation read(Ns later) {
    now += later;
    return meter.read({work.get(), 4}, slots, 0, now);
  }
  shm::ThreadWork& thread(unsigned i = 0, unsigned slot = 0) {
    shm::ProcessWork& p = work[slot];
    p.threads_used = std::max(p.threads_used.load(), i + 1);
    p.thread[i].device = 1;
    return p.thread[i];
  }
  shm::StreamWork& stream(unsigned i = 0, unsigned slot = 0) {
    shm::ProcessWork& p = work[slot];
    p.streams_used = std::max(p.streams_used.load(), i + 1);
    p.stream[i].device = 1;
    return p.stream[i];
  }
  void goes_busy(shm::ThreadWork& t, Ns at) {
    const auto ns = static_cast<uint64_t>(at);
    t.busy = shm::BusyWord::since(ns, shm::BusyWord{t.busy}.total(ns)).value;
  }
  void goes_idle(shm::ThreadWork& t, Ns at) {
    const auto ns = static_cast<uint64_t>(at);
    t.busy = shm::BusyWord::idle(shm::BusyWord{t.busy}.total(ns)).value;
    t.idle_at = ns;
  }
};

TEST(Meter, uses_the_exact_busy_time_of_a_program_that_synchronises) {
  SharedMemory p;
  auto& t = p.thread();
  p.read(0);
  for (int i = 0; i < 4; ++i) {
    p.goes_busy(t, p.now + i * 200 * us);
    p.goes_idle(t, p.now + i * 200 * us + 150 * us);
  }
  const auto seen = p.read(1 * ms);
  EXPECT_EQ(seen.busy, 4 * 150 * us);
  EXPECT_FALSE(seen.in_flight);
  EXPECT_EQ(seen.idle_since, p.now - 250 * us);
}

TEST(Meter, counts_a_program_that_never_synchronises_as_busy_until_its_fences_are_written) {
  SharedMemory p;
  auto& t = p.thread();
  auto& s = p.stream();
  p.read(0);
  p.goes_busy(t, p.now);
  t.submitted = 1'000'000;
  s.fenced = 1'000'000;
  auto seen = p.read(400 * us);
  EXPECT_TRUE(seen.in_flight);
  EXPECT_EQ(seen.busy, 400 * us);
  EXPECT_EQ(seen.left, 800 * us) << "fences are 200 us apart, so at least this much is left";
  s.completed = 1'000'000;
  seen = p.read(5 * ms);
  EXPECT_FALSE(seen.in_flight);
  EXPECT_LE(seen.busy, 2'500 * us);
  // The thread's word still reports busy, but no work was submitted.
  EXPECT_EQ(p.read(5 * ms).busy, 0);
  t.submitted = 1'300'000;
  s.fenced = 1'300'000;
  s.completed = 1'300'000;
  EXPECT_EQ(p.read(5 * ms).busy, 300 * us);
}

TEST(Meter, ends_launches_after_the_last_fence_after_twice_their_estimate) {
  SharedMemory p;
  auto& t = p.thread();
  p.read(0);
  p.goes_busy(t, p.now);
  t.submitted = t.unfenced = 100'000;
  EXPECT_TRUE(p.read(50 * us).in_flight);
  EXPECT_TRUE(p.read(100 * us).in_flight);
  EXPECT_FALSE(p.read(400 * us).in_flight);
}

TEST(Meter, ends_the_launches_of_one_thread_while_another_continues) {
  SharedMemory p;
  auto &one = p.thread(0), &other = p.thread(1);
  p.stream(0), p.stream(1);
  p.read(0);
  p.goes_busy(one, p.now);
  p.goes_busy(other, p.now);
  one.submitted = one.unfenced = 100'000;
  EXPECT_TRUE(p.read(50 * us).in_flight);
  other.submitted = 1'000;
  EXPECT_TRUE(p.read(200 * us).in_flight);
  other.submitted = 2'000;
  EXPECT_FALSE(p.read(200 * us).in_flight);
}

TEST(Meter, ends_launches_in_the_only_stream_at_a_fence_that_another_thread_inserted_after_them) {
  for (const unsigned streams : {1u, 2u}) {
    SharedMemory p;
    auto &one = p.thread(0), &other = p.thread(1);
    auto& s = p.stream(0);
    p.stream(streams - 1);
    p.read(0);
    p.goes_busy(one, p.now);
    p.goes_busy(other, p.now);
    one.submitted = one.unfenced = 200'000;
    EXPECT_TRUE(p.read(50 * us).in_flight);
    s.fenced = 1'000;
    other.submitted = 1'000;
    EXPECT_TRUE(p.read(20 * us).in_flight);
    s.completed = 1'000;
    EXPECT_EQ(p.read(20 * us).in_flight, streams != 1) << "the launches may be in the other stream";
    one.submitted = 300'000;
    EXPECT_TRUE(p.read(20 * us).in_flight) << "they are followed by the fence";
  }
}

TEST(Meter, charges_simultaneous_work_once) {
  SharedMemory p;
  p.slots = {0, 1};
  p.goes_busy(p.thread(0), p.now);
  p.goes_busy(p.thread(1), p.now);
  p.goes_busy(p.thread(0, 1), p.now);
  for (unsigned slot : {0u, 1u}) p.stream(0, slot).fenced = 9'000'000;
  p.read(0);
  EXPECT_EQ(p.read(2 * ms).busy, 2 * ms);
  EXPECT_EQ(p.meter.threads(), 2u);
}

TEST(Meter, reports_who_waits_and_since_when) {
  SharedMemory p;
  p.thread(0).waiting_since = static_cast<uint64_t>(p.now);
  p.thread(1).waiting_since = static_cast<uint64_t>(p.now - 3 * ms);
  EXPECT_TRUE(p.read(1 * ms).waiting);
  EXPECT_EQ(p.meter.waiting_since(), p.now - 4 * ms);
}

TEST(Meter, ignores_work_on_other_devices) {
  SharedMemory p;
  p.thread().device = 2;
  p.stream().device = 2;
  p.goes_busy(p.work[0].thread[0], p.now);
  p.work[0].stream[0].fenced = 1'000'000;
  p.work[0].thread[0].waiting_since = 1;
  const auto seen = p.read(1 * ms);
  EXPECT_FALSE(seen.in_flight || seen.waiting);
  EXPECT_EQ(seen.busy, 0);
}

TEST(Meter, never_reports_more_than_the_elapsed_time_whatever_is_written) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    SharedMemory p;
    p.slots = {0, 1, 2, 3, 99};
    for (int look = 0; look < 30; ++look) {
      // Writes random bits into every word.
      auto* bytes = reinterpret_cast<unsigned char*>(p.work.get());
      for (int i = 0; i < 4000; ++i)
        bytes[random() % (4 * sizeof(shm::ProcessWork))] = static_cast<unsigned char>(random());
      const Ns passed = static_cast<Ns>(random() % 3'000'000);
      const auto seen = p.read(passed);
      ASSERT_GE(seen.busy, 0);
      ASSERT_LE(seen.busy, passed);
      ASSERT_GE(seen.left, 0);
      ASSERT_GE(seen.longest, 0);
      ASSERT_LE(seen.idle_since, p.now);
      ASSERT_LE(p.meter.waiting_since(), p.now);
    }
  }
}

}  // namespace
}  // namespace carve::node
