#include "workload/autoscale.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::workload {
namespace {

using Limit = AutoscaleDecision::Limit;

const AutoscaleTerms one_to_five{.min = 1, .max = 5, .target = 10, .metric = "qps"};

AutoscaleInput load(unsigned ready, uint64_t milli, std::optional<unsigned> fits = std::nullopt) {
  return {.ready = ready, .load_milli = milli, .fits = fits};
}

TEST(Autoscale, desires_as_many_replicas_as_the_load_over_the_target) {
  struct Case {
    unsigned present, ready;
    uint64_t load_milli;
    unsigned desired;
    Limit limit;
  };
  for (const Case& c : {Case{1, 1, 10'000, 1, Limit::none}, Case{1, 1, 11'000, 1, Limit::none},
                        Case{1, 1, 11'001, 2, Limit::none}, Case{1, 1, 20'000, 2, Limit::none},
                        Case{1, 1, 20'001, 3, Limit::none}, Case{2, 2, 18'000, 2, Limit::none},
                        Case{2, 1, 20'000, 2, Limit::none}, Case{1, 1, 900'000, 5, Limit::max},
                        Case{1, 1, UINT64_MAX, 5, Limit::max}, Case{1, 1, 0, 1, Limit::min}}) {
    Autoscaler scaler(c.present, 0);
    const auto decision = scaler.decide(one_to_five, load(c.ready, c.load_milli), 1);
    EXPECT_EQ(decision.replicas, c.desired) << c.load_milli << ": " << decision.reason;
    EXPECT_EQ(decision.limit, c.limit) << c.load_milli << ": " << decision.reason;
  }
}

TEST(Autoscale, desires_fewer_replicas_after_300_s_without_a_higher_load) {
  Autoscaler scaler(1, 0);
  EXPECT_EQ(scaler.decide(one_to_five, load(1, 40'000), second_ns).replicas, 4u);
  EXPECT_EQ(scaler.decide(one_to_five, load(4, 10'000), 2 * second_ns).replicas, 4u);
  EXPECT_EQ(scaler.decide(one_to_five, load(4, 25'000), 200 * second_ns).replicas, 4u);
  EXPECT_EQ(scaler.decide(one_to_five, load(4, 10'000), 301 * second_ns).replicas, 4u);
  EXPECT_EQ(scaler.decide(one_to_five, load(4, 10'000), 302 * second_ns).replicas, 3u)
      << "the load at 200 s was higher";
  EXPECT_EQ(scaler.decide(one_to_five, load(3, 10'000), 501 * second_ns).replicas, 1u);
}

TEST(Autoscale, changes_nothing_if_the_load_is_not_measured) {
  Autoscaler scaler(3, 0);
  const auto decision = scaler.decide(one_to_five, {.ready = 3, .load_milli = {}, .fits = {}}, second_ns);
  EXPECT_EQ(decision.replicas, 3u);
  EXPECT_EQ(decision.limit, Limit::unmeasured);
  EXPECT_EQ(scaler.decide(one_to_five, load(0, 0), 1000 * second_ns).replicas, 3u) << "no replica is ready";
}

TEST(Autoscale, desires_no_more_replicas_than_the_devices_have_capacity_for) {
  Autoscaler scaler(1, 0);
  const auto decision = scaler.decide(one_to_five, load(2, 50'000, 2), second_ns);
  EXPECT_EQ(decision.replicas, 2u);
  EXPECT_EQ(decision.limit, Limit::capacity);
  EXPECT_NE(decision.reason.find("5 are desired, but the devices have capacity for 2"), std::string::npos)
      << decision.reason;
  EXPECT_EQ(scaler.decide(one_to_five, load(2, 50'000), 2 * second_ns).replicas, 5u) << "capacity is free";
}

TEST(Autoscale, reports_the_figures_in_its_reason) {
  Autoscaler scaler(1, 0);
  EXPECT_EQ(scaler.decide(one_to_five, load(2, 25'000), second_ns).reason,
            "qps is 12.5 per replica over 2 replicas, and the target is 10");
}

// In every history, the number stays within its bounds, follows a constant load, and does not decrease within
// 300 s of a higher recommendation.
TEST(Autoscale, follows_the_load_in_seeded_histories) {
  for (uint32_t seed = 0; seed < 5'000; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](unsigned most) { return static_cast<unsigned>(random() % (most + 1)); };
    AutoscaleTerms terms{.min = 1 + up_to(3), .max = 1, .target = 1 + up_to(50), .metric = "qps"};
    terms.max = terms.min + up_to(20);
    unsigned replicas = 1 + up_to(20);
    Autoscaler scaler(replicas, 0);
    Ns now = 0, last_needed = 0;
    unsigned needed = 0;
    for (unsigned step = 0; step < 60; ++step) {
      now += up_to(100) * second_ns;
      needed = up_to(30);
      const auto decision = scaler.decide(terms, load(replicas, needed * terms.target * 1000), now);
      ASSERT_GE(decision.replicas, terms.min) << seed;
      ASSERT_LE(decision.replicas, terms.max) << seed;
      // The current replicas handle a load within the tolerance.
      ASSERT_GE(decision.replicas * 11, std::clamp(needed, terms.min, terms.max) * 10) << seed;
      replicas = decision.replicas;
    }
    for (last_needed = now; now <= last_needed + 700 * second_ns; now += 10 * second_ns)
      replicas = scaler.decide(terms, load(replicas, needed * terms.target * 1000), now).replicas;
    const unsigned wanted = std::clamp(needed, terms.min, terms.max);
    ASSERT_GE(replicas * 11, wanted * 10) << seed;
    ASSERT_LE(replicas * 9, wanted * 10) << seed;
  }
}

TEST(LoadWindow, measures_the_rate_of_the_last_15_s) {
  LoadWindow window;
  EXPECT_FALSE(window.per_second_milli());
  for (int i = 0; i <= 60; ++i)
    window.add(i * second_ns, i < 40 ? 0 : static_cast<uint64_t>(i - 40) * 20, i < 40 ? 0 : 3);
  EXPECT_EQ(window.per_second_milli(), 20'000u);
  EXPECT_EQ(window.mean_level_milli(), 3'000u);
}

TEST(LoadWindow, measures_no_rate_over_a_short_window_or_after_a_counter_reset) {
  LoadWindow window;
  window.add(0, 100, 0);
  window.add(2 * second_ns, 200, 0);
  EXPECT_FALSE(window.per_second_milli());
  window.add(4 * second_ns, 300, 0);
  EXPECT_EQ(window.per_second_milli(), 50'000u);
  window.add(5 * second_ns, 1, 0);
  EXPECT_FALSE(window.per_second_milli());
}

}  // namespace
}  // namespace carve::workload
