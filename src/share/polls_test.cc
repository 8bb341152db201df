#include <gtest/gtest.h>

#include "share/testing/script.h"

namespace carve::share {
namespace {

TEST(Device, wakes_the_next_client_shortly_before_the_drain_ends) {
  Script s;
  s.device.set_wake_latency(50 * us);
  const unsigned a = s.add_client(native(3000)), b = s.add_client(native(6000)),
                 c = s.add_client(native(1000));
  s.comes(a);
  s.step();
  s.comes(b);
  s.comes(c);
  s.runs(a, 5 * ms, 800 * us);
  const Ns next = s.step(5 * ms);
  ASSERT_FALSE(s.open(a));
  EXPECT_FALSE(s.device.lease(b).imminent) << "the drain takes 800 us";
  EXPECT_LE(next, s.now + 700 * us) << "a poll is due when b is to be woken";
  s.runs(a, 700 * us, 100 * us);
  s.step(700 * us);
  EXPECT_TRUE(s.device.lease(b).imminent);
  EXPECT_FALSE(s.device.lease(a).imminent || s.device.lease(c).imminent);
  s.runs(a, 300 * us, 500 * us);  // The estimate was wrong.
  s.step(300 * us);
  EXPECT_TRUE(s.device.lease(b).imminent) << "the client is not woken twice";
  s.rests(a);
  s.step(10 * us);
  EXPECT_TRUE(s.open(b));
  EXPECT_FALSE(s.device.lease(b).imminent);
}

TEST(Device, wakes_a_client_shortly_before_it_has_enough_tokens) {
  Script s;
  s.device.set_wake_latency(50 * us);
  const unsigned a = s.add_client(fixed(5000));
  s.comes(a);
  s.step();
  while (s.open(a)) {
    s.runs(a, 500 * us);
    s.step(500 * us);
  }
  s.rests(a);
  s.comes(a);
  Ns next = s.step(10 * us), woken = 0;
  while (!s.open(a)) {
    next = s.step(next - s.now);
    if (woken == 0 && s.device.lease(a).imminent) woken = s.now;
  }
  EXPECT_EQ(s.now - woken, 100 * us);
}

TEST(Device, gives_up_a_drain_that_does_not_end_and_charges_both_clients) {
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

TEST(Device, informs_the_client_whose_work_drains) {
  Script s;
  const unsigned a = s.add_client(guaranteed(5000)), b = s.add_client(guaranteed(5000));
  s.comes(a);
  s.step();
  EXPECT_FALSE(s.device.lease(a).draining);
  s.comes(b);
  s.runs(a, 6 * ms);
  s.step(6 * ms);
  EXPECT_TRUE(s.device.lease(a).draining);
  EXPECT_FALSE(s.device.lease(b).draining);
  s.rests(a);
  s.step(100 * us);
  ASSERT_TRUE(s.open(b));
  EXPECT_FALSE(s.device.lease(a).draining);
}

TEST(Device, polls_a_drain_before_its_estimated_end) {
  Script s;
  const unsigned a = s.add_client(native(3000)), b = s.add_client(native(6000));
  s.comes(a);
  s.step();
  s.comes(b);
  s.runs(a, 5 * ms, 800 * us);
  const Ns began = s.now + 5 * ms, end = began + 800 * us;
  Ns next = s.step(5 * ms);
  int polls = 0;
  for (; s.now < end; ++polls) {
    ASSERT_LE(next, end);
    ASSERT_LE(next - s.now, std::max<Ns>(s.now - began, 50 * us))
        << "the interval is at most the time that has passed";
    s.runs(a, next - s.now, end - next);
    next = s.step(next - s.now);
  }
  EXPECT_EQ(s.now, end) << "a poll is due at the estimated end";
  EXPECT_LE(polls, 10);
}

}  // namespace
}  // namespace carve::share
