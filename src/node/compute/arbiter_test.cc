// Tests the arbiter's thread with slices that are threads of this test. Each slice writes its pages as the
// guest library does, and occupies the "device" for one period after another while its gate is open.
#include "node/compute/arbiter.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>

#include "os/clock.h"

namespace carve::node {
namespace {

struct FakeClient {
  std::unique_ptr<shm::Control> control{new shm::Control()};
  std::unique_ptr<shm::WorkPages> work{new shm::WorkPages()};
  uint64_t id;

  explicit FakeClient(uint64_t number) : id(number) {
    work->process[0].threads_used = 1;
    work->process[0].thread[0].device = 1;
  }
  shm::ThreadWork& thread() { return work->process[0].thread[0]; }
  shm::GateState gate() const { return shm::LeaseWord{control->devices[0].lease}.gate(); }
  ArbiterClient arbitrated(share::Entitlement entitlement) {
    return {id, entitlement, 0, control.get(), work->process, nullptr};
  }
};

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 5000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

constexpr share::Entitlement fixed(uint32_t bp) { return {.share = {bp}}; }
constexpr unsigned slots[] = {0};

struct Running : ::testing::Test {
  std::unique_ptr<shm::Heartbeat> heartbeat{new shm::Heartbeat()};
  FakeClient a{1}, b{2};
  std::unique_ptr<Arbiter> arbiter =
      std::make_unique<Arbiter>(0, Uuid{}, heartbeat->arbiter[0], share::Tuning{});

  // Arrives at a closed gate like a launching thread.
  void comes(FakeClient& t) {
    t.thread().waiting_since = static_cast<uint64_t>(os::monotonic_ns());
    if (heartbeat->arbiter[0].asleep.load() != 0)
      syscall(SYS_futex, &heartbeat->arbiter[0].asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
};
using ArbiterThread = Running;

TEST_F(ArbiterThread, sleeps_until_a_slice_arrives_and_then_opens_its_gate) {
  ASSERT_TRUE(arbiter->add(a.arbitrated(fixed(5000)), slots));
  EXPECT_TRUE(
      eventually([&] { return a.gate() == shm::GateState::closed && heartbeat->arbiter[0].asleep == 1; }));
  comes(a);
  EXPECT_TRUE(eventually([&] {
    if (a.gate() != shm::GateState::lease)
      comes(a);  // Repeated, because a wake just before the sleep may be lost.
    return a.gate() == shm::GateState::lease;
  }));
  EXPECT_TRUE(eventually([&] { return a.control->devices[0].lease_deadline != 0; }));
}

TEST_F(ArbiterThread, counts_no_overlapping_waits_of_a_thread_that_sleeps_through_its_leases) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  comes(a);  // The client never reports that it was admitted.
  std::vector<TraceSpan> waits;
  ASSERT_TRUE(eventually([&] {
    comes(a);
    a.thread().waiting_since = 1;  // The thread waits since the start.
    waits = arbiter->trace(0);
    std::erase_if(waits, [](const TraceSpan& s) { return s.kind != SpanKind::wait; });
    return waits.size() >= 4;
  }));
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i].begin_ns, waits[i - 1].end_ns);
}

TEST_F(ArbiterThread, lets_two_busy_clients_take_turns_and_never_admits_both) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  arbiter->add(b.arbitrated(fixed(5000)), slots);
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0}, most_inside{0};
  std::atomic<uint64_t> turns[2] = {};
  // An admitted client occupies periods of 200 us, which must not overlap with another client's.
  const auto slice = [&](FakeClient& t, std::atomic<uint64_t>& count) {
    while (!stop) {
      if (t.gate() != shm::GateState::lease) {
        comes(t);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      t.thread().waiting_since = 0;
      auto& stream = t.work->process[0].stream[0];
      t.work->process[0].streams_used = 1;
      stream.device = 1;
      const auto now = static_cast<uint64_t>(os::monotonic_ns());
      t.thread().busy = shm::BusyWord::since(now, shm::BusyWord{t.thread().busy}.total(now)).value;
      stream.fenced += 200'000;
      if (t.gate() == shm::GateState::lease) {  // Otherwise the gate closed, and the period does not begin.
        const int now_inside = ++inside;
        if (now_inside > most_inside) most_inside = now_inside;
        while (static_cast<uint64_t>(os::monotonic_ns()) < now + 200'000) {}
        --inside;
        ++count;
      }
      stream.completed = stream.fenced.load();
      const auto end = static_cast<uint64_t>(os::monotonic_ns());
      t.thread().busy = shm::BusyWord::idle(shm::BusyWord{t.thread().busy}.total(end)).value;
      t.thread().idle_at = end;
    }
  };
  std::thread first(slice, std::ref(a), std::ref(turns[0])), second(slice, std::ref(b), std::ref(turns[1]));
  EXPECT_TRUE(
      eventually([&] { return arbiter->view().figures.switches > 40 && turns[0] > 0 && turns[1] > 0; }));
  stop = true;
  first.join();
  second.join();
  const DeviceCompute view = arbiter->view();
  ASSERT_EQ(view.slices.size(), 2u);
  uint64_t overruns = 0;
  for (const SliceCompute& slice : view.slices) overruns += slice.figures.overruns;
  EXPECT_LE(most_inside, overruns == 0 ? 1 : 2);
}

// A process can report any number of copied bytes, but sums over a fleet must remain correct.
TEST_F(ArbiterThread, counts_copied_bytes_up_to_what_a_device_can_copy) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  const auto copied = [&] { return arbiter->view().slices.at(0).figures.copied_to_device_bytes; };
  a.work->process[0].copied[0] = 1000;
  EXPECT_EQ(copied(), 1000u);
  const int64_t before = os::monotonic_ns();
  a.work->process[0].copied[0] = UINT64_MAX - 5;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const uint64_t seen = copied();
  const auto passed = static_cast<uint64_t>(os::monotonic_ns() - before) + 1'000'000'000;
  EXPECT_GT(seen, 1000u);
  EXPECT_LE(seen, 1000 + passed * 16);
  a.work->process[0].copied[0] = 7;
  EXPECT_GE(copied(), seen) << "a total never decreases";
}

TEST_F(ArbiterThread, opens_the_gate_of_a_removed_client_and_admits_the_next) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  arbiter->add(b.arbitrated(fixed(5000)), slots);
  ASSERT_TRUE(eventually([&] { return comes(a), a.gate() == shm::GateState::lease; }));
  a.work->process[0].stream[0].device = 1;
  a.work->process[0].streams_used = 1;
  a.work->process[0].stream[0].fenced = 1;  // The work never completes.
  arbiter->remove(a.id);
  EXPECT_EQ(a.gate(), shm::GateState::open);
  EXPECT_TRUE(eventually([&] { return comes(b), b.gate() == shm::GateState::lease; }));
}

TEST_F(ArbiterThread, does_not_wait_for_a_dead_process) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  arbiter->add(b.arbitrated(fixed(5000)), slots);
  a.work->process[0].stream[0].device = 1;
  a.work->process[0].streams_used = 1;
  a.work->process[0].stream[0].fenced = 1;
  ASSERT_TRUE(eventually([&] { return comes(a), a.gate() == shm::GateState::lease; }));
  arbiter->remove_process(a.id, 0);
  EXPECT_TRUE(eventually([&] { return comes(b), b.gate() == shm::GateState::lease; }));
}

TEST_F(ArbiterThread, remembers_what_dead_processes_copied) {
  arbiter->add(a.arbitrated(fixed(5000)), slots);
  a.work->process[0].copied[1] = 700;
  EXPECT_EQ(arbiter->view().slices.at(0).figures.copied_to_host_bytes, 700u);
  arbiter->remove_process(a.id, 0);
  a.work->process[0].copied[1] = 0;
  EXPECT_EQ(arbiter->view().slices.at(0).figures.copied_to_host_bytes, 700u);
  arbiter->add_process(a.id, 0);
  a.work->process[0].copied[1] = 50;
  EXPECT_EQ(arbiter->view().slices.at(0).figures.copied_to_host_bytes, 750u);
}

TEST_F(ArbiterThread, leaves_a_timetable_and_open_gates_behind) {
  arbiter->add(a.arbitrated(fixed(3000)), slots);
  arbiter->add(b.arbitrated(fixed(5000)), slots);
  EXPECT_EQ(a.control->devices[0].fallback_period, 60'000'000u);
  EXPECT_EQ(a.control->devices[0].fallback_length, 18'000'000u);
  EXPECT_EQ(b.control->devices[0].fallback_offset, 18'000'000u);
  EXPECT_TRUE(arbiter->change(a.id, fixed(4000)));
  EXPECT_EQ(a.control->devices[0].fallback_length, 24'000'000u);
  EXPECT_FALSE(arbiter->change(77, fixed(4000)));
  arbiter.reset();
  EXPECT_EQ(a.gate(), shm::GateState::open);
  EXPECT_EQ(b.gate(), shm::GateState::open);
}

}  // namespace
}  // namespace carve::node
