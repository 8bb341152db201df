#include <gtest/gtest.h>

#include <random>

#include "share/testing/script.h"

namespace carve::share {
namespace {

TEST(DeviceSchedulerDeathTest, aborts_if_a_client_that_was_never_added_is_changed) {
  DeviceScheduler scheduler;
  EXPECT_DEATH(scheduler.change(3, {}, 0), "device_scheduler\\.cc:[0-9]+: .*only a registered client");
}

TEST(Device, opens_the_gate_when_a_client_arrives_and_otherwise_needs_no_poll) {
  Script s;
  const unsigned a = s.add_client(guaranteed(5000));
  EXPECT_EQ(s.step(), never);
  EXPECT_FALSE(s.open(a));
  s.comes(a);
  // A burst client needs no poll if it is the only client.
  EXPECT_EQ(s.step(1 * ms), never);
  EXPECT_TRUE(s.open(a));
  EXPECT_EQ(s.device.lease(a).in_flight_limit, Tuning{}.in_flight_limit_alone);
  EXPECT_EQ(s.device.lease(a).deadline, 0);
  EXPECT_TRUE(s.device.lease(a).uncontended);
  s.add_client(guaranteed(2000));
  s.runs(a, 0);
  s.step();
  EXPECT_FALSE(s.device.lease(a).uncontended);
}

TEST(Device, limits_the_work_in_flight_next_to_a_latency_client) {
  Script s;
  const unsigned trainer = s.add_client(guaranteed(7000));
  s.add_client({.policy = Policy::guaranteed_burst_share, .latency = LatencyClass::latency, .share = {3000}});
  s.comes(trainer);
  s.step();
  EXPECT_EQ(s.device.lease(trainer).in_flight_limit, s.device.tuning().min_in_flight_limit);
}

TEST(Device, passes_the_device_on_if_its_lease_holder_is_removed) {
  Script s;
  const unsigned a = s.add_client(fixed(5000)), b = s.add_client(fixed(5000));
  s.comes(a);
  s.comes(b);
  s.step();
  ASSERT_TRUE(s.open(a));
  s.device.remove_client(a, s.now);
  s.step(5 * ms);
  EXPECT_TRUE(s.open(b));
}

TEST(Device, counts_for_which_client_another_one_waits) {
  Script s;
  const unsigned a = s.add_client(guaranteed(5000)), b = s.add_client(guaranteed(5000));
  s.comes(a);
  s.step();
  ASSERT_TRUE(s.open(a));
  s.runs(a, 0, 10 * ms);
  s.comes(b);
  s.step(1 * ms);
  s.step(2 * ms);
  EXPECT_EQ(s.device.counters(b).waiting, 2 * ms);
  EXPECT_EQ(s.device.waited_for(b)[a], 2 * ms);
  EXPECT_EQ(s.device.waited_for(b)[b], 0);
  s.device.remove_client(a, s.now);
  EXPECT_EQ(s.device.waited_for(b)[a], 0) << "the number may be given to another client";
}

// Returns whether all clients have equal terms: native burst shares, batch, no gang. Then all gates are open
// and the hardware switches between the clients.
bool all_are_equal_natives(const Script& s) {
  bool any = false;
  std::optional<Share> share;  // The same for all clients with a share; the others have the mean.
  for (unsigned p = 0; p < s.seen.size(); ++p) {
    if (!s.device.present(p)) continue;
    any = true;
    const Entitlement& t = s.device.entitlement(p);
    if (t != Entitlement{.policy = Policy::native_burst_share, .share = t.share}) return false;
    if (t.share.basis_points == 0) continue;
    if (share && *share != t.share) return false;
    share = t.share;
  }
  return any;
}

// For any observations, even those that no correct slice causes, the charges equal the elapsed time, no gate
// is open except the holder's, and the next poll is in the future.
TEST(Device, keeps_its_invariants_for_any_observations) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    Script s;
    const auto entitlement = [&] {
      return Entitlement{.policy = static_cast<Policy>(random() % 3),
                         .latency = static_cast<LatencyClass>(random() % 4 == 0),
                         .share = {random() % 8 == 0 ? 0 : 1 + static_cast<uint32_t>(random() % 10000)},
                         .gang = static_cast<Gang>(random() % 10 == 0 ? random() % 3 : 0)};
    };
    Ns charged_before = 0;
    bool at_once = false;
    for (int i = 0; i < 200; ++i) {
      if (random() % 16 == 0) {
        const unsigned client = static_cast<unsigned>(random() % max_clients);
        if (!s.device.present(client))
          s.device.add_client(entitlement(), s.now);
        else if (random() % 2 == 0)
          s.device.change(client, entitlement(), s.now);
        else {
          charged_before -= s.device.counters(client).charged;
          s.device.remove_client(client, s.now);
        }
      }
      for (Observation& o : s.seen) {
        o.waiting = random() % 2 == 0;
        o.in_flight = random() % 2 == 0;
        o.busy = static_cast<Ns>(random() % 3) * static_cast<Ns>(random() % 20'000'000) - 1'000'000;
        o.left = static_cast<Ns>(random()) * static_cast<Ns>(random() % 100);
        o.longest = static_cast<Ns>(random()) * static_cast<Ns>(random() % 100);
        o.idle_since = s.now - static_cast<Ns>(random() % 2'000'000) + 1'000'000;
        o.leader_open = random() % 2 == 0;
      }
      const Ns passed = static_cast<Ns>(random() % 10'000'000);
      const Ns busy_before = s.device.busy();
      const Ns next = s.step(passed);
      ASSERT_GE(next, s.now) << "seed " << seed;
      // The next poll is due immediately only if a gate was just closed, and never twice in a row.
      ASSERT_TRUE(next > s.now || (s.device.is_draining() && !at_once)) << "seed " << seed;
      at_once = next == s.now;
      Ns charged = 0;
      unsigned open = 0;
      for (unsigned p = 0; p < max_clients; ++p) {
        if (!s.device.present(p)) continue;
        charged += s.device.counters(p).charged;
        open += s.open(p);
        ASSERT_LE(s.device.tokens(p), 260 * ms) << "seed " << seed;
      }
      ASSERT_EQ(charged - charged_before, s.device.busy() - busy_before) << "seed " << seed;
      charged_before = charged;
      ASSERT_TRUE(open <= 1 || all_are_equal_natives(s)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace carve::share
