#include <gtest/gtest.h>

#include "share/testing/script.h"

namespace carve::share {
namespace {

TEST(Device, keeps_the_gate_of_an_idle_burst_client_open_if_it_is_the_only_one) {
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

TEST(Device, ends_a_lease_after_a_quantum_and_opens_the_next_gate_after_the_drain) {
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
  EXPECT_FALSE(s.open(b)) << "client a's work in flight must drain first";
  s.rests(a);
  s.step(300 * us);
  EXPECT_TRUE(s.open(b));
}

TEST(Device, lets_a_client_with_tokens_keep_its_lease_in_a_short_pause) {
  for (const Entitlement& own : {guaranteed(6000), fixed(6000)}) {
    Script s;
    const unsigned a = s.add_client(own), b = s.add_client(native(4000));
    s.comes(a);
    s.step();
    s.comes(b);
    s.runs(a, 3 * ms);
    s.step(3 * ms);
    s.rests(a);
    const Ns next = s.step(600 * us);
    EXPECT_EQ(next, s.now + 900 * us) << "no poll is needed before the end of the longest pause";
    EXPECT_TRUE(s.open(a));
    s.step(900 * us);
    EXPECT_FALSE(s.open(a)) << "the lease does not outlast a long pause";
  }
}

TEST(Device, ends_a_lease_in_a_pause_if_another_client_has_tokens_or_little_work_was_done) {
  for (const bool another_has_tokens : {true, false}) {
    Script s;
    const unsigned a = s.add_client(guaranteed(6000));
    const unsigned b = s.add_client(another_has_tokens ? guaranteed(4000) : native(4000));
    s.comes(a);
    s.step();
    s.comes(b);
    const Ns work = another_has_tokens ? 3 * ms : 50 * us;
    s.runs(a, work);
    s.step(work);
    s.rests(a);
    s.step(300 * us);
    EXPECT_FALSE(s.open(a));
  }
}

TEST(Device, holds_a_lease_in_a_pause_only_if_the_previous_pause_was_short) {
  Script s;
  const unsigned a = s.add_client(guaranteed(6000)), b = s.add_client(native(4000));
  s.comes(a);
  s.step();
  s.comes(b);
  // Works for 2 ms, and stays away for the rest of its pause if it loses its lease.
  const auto keeps_lease = [&](Ns pause) {
    s.runs(a, 2 * ms);
    s.step(2 * ms);
    s.rests(a);
    s.step(600 * us);
    if (s.open(a) && pause == 600 * us) return true;
    if (s.open(a)) s.step(900 * us);
    EXPECT_FALSE(s.open(a));
    s.step();
    EXPECT_TRUE(s.open(b));
    s.runs(b, 0);
    s.step(pause - (s.now - s.seen[a].idle_since));
    s.comes(a);
    s.step();
    while (!s.open(a)) {
      s.runs(b, 1 * ms);
      s.step(1 * ms);
      if (s.open(b)) continue;
      s.rests(b);
      s.comes(b);
      s.step();
    }
    return false;
  };
  EXPECT_TRUE(keeps_lease(600 * us));
  EXPECT_FALSE(keeps_lease(4 * ms));
  EXPECT_FALSE(keeps_lease(600 * us)) << "the previous pause was long";
  EXPECT_TRUE(keeps_lease(600 * us));
}

TEST(Device, never_lets_a_fixed_share_client_exceed_its_share) {
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

TEST(Device, admits_a_latency_client_with_tokens_immediately) {
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

TEST(Device, opens_all_gates_if_all_weights_are_equal_and_native) {
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

TEST(Device, gives_a_native_client_without_a_share_the_mean_weight) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client({.policy = Policy::native_burst_share});
  s.comes(a);
  s.comes(b);
  s.step();
  EXPECT_TRUE(s.open(a) && s.open(b)) << "all weights are equal, so all gates are open";
  s.device.change(b, {.policy = Policy::native_burst_share, .best_effort = true}, s.now);
  s.runs(a, 0);
  s.runs(b, 0);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(a) && s.open(b)) << "a best-effort client has a smaller weight";
}

TEST(Device, lets_a_follower_run_only_while_its_leader_runs) {
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
  EXPECT_FALSE(s.open(a)) << "the leader runs now, so the follower is next immediately";
  s.rests(a);
  s.step(100 * us);
  EXPECT_TRUE(s.open(f));
  s.seen[f].leader_open = false;
  s.runs(f, 1 * ms);
  s.step(1 * ms);
  EXPECT_FALSE(s.open(f));
}

}  // namespace
}  // namespace carve::share
