#include "share/device_scheduler.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace carve::share {
namespace {

// A device whose clients are scripted: the test sets each observation.
struct Script {
  DeviceScheduler device;
  Ns now = 7 * second;
  std::array<Observation, max_clients> seen{};

  unsigned add_client(Entitlement entitlement) { return *device.add_client(entitlement, now); }
  Ns step(Ns later = 0) {
    now += later;
    const Ns next = device.step(now, seen);
    for (Observation& o : seen) o.busy = 0;
    return next;
  }
  bool open(unsigned client) const { return device.lease(client).open; }
  void runs(unsigned client, Ns busy, Ns left = 1 * ms) {
    seen[client].waiting = false;
    seen[client].in_flight = true;
    seen[client].busy = busy;
    seen[client].left = left;
  }
  void rests(unsigned client) {
    seen[client].waiting = seen[client].in_flight = false;
    seen[client].idle_since = now;
  }
  void comes(unsigned client) { seen[client].waiting = true; }
};

constexpr Entitlement fixed(uint32_t bp) { return {.policy = Policy::fixed_share, .share = {bp}}; }
constexpr Entitlement guaranteed(uint32_t bp) {
  return {.policy = Policy::guaranteed_burst_share, .share = {bp}};
}
constexpr Entitlement native(uint32_t bp) { return {.policy = Policy::native_burst_share, .share = {bp}}; }

TEST(DeviceSchedulerDeathTest, stops_if_a_client_that_was_never_added_is_changed) {
  DeviceScheduler scheduler;
  EXPECT_DEATH(scheduler.change(3, {}, 0), "device_scheduler\\.cc:[0-9]+: .*only a registered client");
}

TEST(Device, opens_for_a_client_that_comes_and_sleeps_otherwise) {
  Script s;
  const unsigned a = s.add_client(guaranteed(5000));
  EXPECT_EQ(s.step(), never);
  EXPECT_FALSE(s.open(a));
  s.comes(a);
  // A burst client that is alone needs no poll.
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

TEST(Device, a_burst_client_alone_keeps_its_gate_while_idle) {
  Script s;
  const unsigned a = s.add_client(guaranteed(5000));
  s.comes(a);
  s.step();
  s.runs(a, 0);
  s.step(1 * ms);
  s.rests(a);
  EXPECT_EQ(s.step(10 * second), never);
  EXPECT_TRUE(s.open(a));
}

TEST(Device, the_lease_ends_after_a_quantum_if_another_waits_and_the_next_opens_after_the_drain) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client(native(6000));
  s.comes(a);
  s.step();
  ASSERT_TRUE(s.open(a));
  s.comes(b);
  s.runs(a, 4 * ms);
  s.step(4 * ms);
  EXPECT_TRUE(s.open(a));
  s.runs(a, 1 * ms);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(a));
  EXPECT_FALSE(s.open(b)) << "what a has in flight must drain first";
  s.rests(a);
  s.step(300 * us);
  EXPECT_TRUE(s.open(b));
}

TEST(Device, a_fixed_share_never_runs_on_credit) {
  Script s;
  const unsigned a = s.add_client(fixed(1000));
  s.comes(a);
  s.step();
  ASSERT_TRUE(s.open(a));
  Ns ran = 0;
  const Ns begun = s.now;
  for (int i = 0; i < 20000; ++i) {
    if (s.open(a)) {
      s.runs(a, 500 * us);
      ran += 500 * us;
    } else {
      s.rests(a);
      s.comes(a);
    }
    s.step(500 * us);
  }
  EXPECT_NEAR(static_cast<double>(ran) / static_cast<double>(s.now - begun), 0.1, 0.002);
}

TEST(Device, a_drain_that_does_not_end_is_given_up_and_both_are_charged) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client(native(6000));
  s.comes(a);
  s.step();
  s.comes(b);
  s.runs(a, 5 * ms, 5 * second);
  s.step(5 * ms);
  for (int i = 0; i < 20 && !s.open(b); ++i) {
    s.runs(a, 10 * ms, 5 * second);
    s.step(10 * ms);
  }
  ASSERT_TRUE(s.open(b));
  EXPECT_EQ(s.device.counters(a).overruns, 1u);
  const Ns a_before = s.device.counters(a).charged, b_before = s.device.counters(b).charged;
  s.runs(a, 4 * ms);
  s.runs(b, 4 * ms);
  s.step(4 * ms);
  EXPECT_EQ(s.device.counters(a).charged - a_before, 2 * ms);
  EXPECT_EQ(s.device.counters(b).charged - b_before, 2 * ms);
}

TEST(Device, a_latency_client_is_let_in_at_once_while_it_has_tokens) {
  Script s;
  const unsigned trainer = s.add_client(guaranteed(7000));
  const unsigned server = s.add_client(
      {.policy = Policy::guaranteed_burst_share, .latency = LatencyClass::latency, .share = {3000}});
  s.comes(trainer);
  s.step();
  s.runs(trainer, 1 * ms);
  s.step(1 * ms);
  s.comes(server);
  s.runs(trainer, 100 * us, 200 * us);
  s.step(100 * us);
  EXPECT_FALSE(s.open(trainer)) << "long before its quantum is over";
  s.rests(trainer);
  s.step(200 * us);
  EXPECT_TRUE(s.open(server));
}

TEST(Device, beside_a_latency_client_little_may_be_in_flight) {
  Script s;
  const unsigned trainer = s.add_client(guaranteed(7000));
  s.add_client({.policy = Policy::guaranteed_burst_share, .latency = LatencyClass::latency, .share = {3000}});
  s.comes(trainer);
  s.step();
  EXPECT_EQ(s.device.lease(trainer).in_flight_limit, s.device.tuning().min_in_flight_limit);
}

TEST(Device, equal_native_weights_are_left_to_the_hardware) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client(native(3000));
  EXPECT_EQ(s.step(), never);
  EXPECT_TRUE(s.open(a));
  EXPECT_TRUE(s.open(b));
  s.device.change(b, native(4000), s.now);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(a));
  EXPECT_FALSE(s.open(b));
}

TEST(Device, a_native_client_without_a_share_weighs_as_much_as_the_others_on_average) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client({.policy = Policy::native_burst_share});
  s.comes(a);
  s.comes(b);
  s.step();
  EXPECT_TRUE(s.open(a) && s.open(b)) << "equal weights are left to the hardware";
  s.device.change(b, {.policy = Policy::native_burst_share, .best_effort = true}, s.now);
  s.runs(a, 0);
  s.runs(b, 0);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(a) && s.open(b)) << "a best-effort client weighs less";
}

TEST(Device, who_leaves_while_it_holds_the_lease_leaves_the_device_to_the_next) {
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

TEST(Device, a_follower_runs_only_while_its_leader_does) {
  Script s;
  const unsigned a = s.add_client(fixed(5000));
  const unsigned f = s.add_client({.policy = Policy::fixed_share, .share = {3000}, .gang = Gang::follows});
  s.comes(f);
  s.step();
  EXPECT_FALSE(s.open(f));
  s.comes(a);
  s.step(10 * ms);
  ASSERT_TRUE(s.open(a));
  s.seen[f].leader_open = true;
  s.runs(a, 1 * ms);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(a)) << "its leader runs now, elsewhere: at once";
  s.rests(a);
  s.step(100 * us);
  EXPECT_TRUE(s.open(f));
  s.seen[f].leader_open = false;
  s.runs(f, 1 * ms);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(f));
}

// Returns whether all clients have equal terms: native burst shares, batch, no gang. Then the hardware takes
// turns and all gates are open.
bool all_are_equal_natives(const Script& s) {
  bool any = false;
  std::optional<Share> share;  // Of all that have one; the others have the mean, which is the same.
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

// For any observation, also those that no correct slice causes: charges equal the elapsed time, no gate is
// open except the holder's, and the next poll is in the future.
TEST(Device, holds_its_invariants_for_any_observation) {
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
      // The next poll is due at once only if a gate was just closed, and never twice in a row.
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
