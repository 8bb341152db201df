#include "node/devices/work_samples.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace carve::node {
namespace {

constexpr uint64_t second = 1'000'000;

nvmlProcessUtilizationSample_t sample(unsigned pid, uint64_t stamp, unsigned percent) {
  return {pid, stamp, percent, 0, 0, 0};
}

// A device with two processes that records one of them every 200 ms with the busy time of the whole device.
struct Device {
  std::mt19937 random{1};
  WorkSamples work;
  uint64_t now = 1000 * second;

  // `part` is the percentage of the busy time that process 1 has. Process 2 has the rest.
  void run(unsigned periods, unsigned part, unsigned busy_percent) {
    const unsigned pids[] = {1, 2};
    for (unsigned i = 0; i < periods; ++i) {
      now += second / 5;
      const std::vector named{sample(random() % 100 < part ? 1 : 2, now, busy_percent)};
      work.add(busy_percent > 0 ? named : std::vector<nvmlProcessUtilizationSample_t>{}, pids, now);
    }
  }
};

// If the driver is queried less often than it records, a sample is the average of several periods.
TEST(WorkSamples, weight_answers_about_several_periods_by_their_time) {
  WorkSamples work;
  const unsigned pids[] = {1, 2};
  uint64_t now = 1000 * second;
  work.add({}, pids, now);
  for (int i = 0; i < 40; ++i) {
    now += second;
    work.add(std::vector{sample(1, now, 60), sample(2, now - second / 5, 40)}, pids, now);
  }
  EXPECT_EQ(work.shown(1).percent, 60u);
  EXPECT_LT(work.shown(1).at_least, 50u);
  EXPECT_GT(work.shown(1).at_most, 70u);
}

TEST(WorkSamples, start_a_new_window_if_the_clock_is_set_back) {
  WorkSamples work;
  const unsigned pids[] = {1};
  work.add({}, pids, 1000 * second);
  work.add(std::vector{sample(1, 1001 * second, 90)}, pids, 1001 * second);
  EXPECT_EQ(work.shown(1).percent, 90u);
  work.add(std::vector{sample(1, 3 * second, 90)}, pids, 3 * second);
  EXPECT_EQ(work.shown(1).percent, 0u);
  EXPECT_EQ(work.shown(1).at_most, 100u);
}

TEST(WorkSamples, show_a_process_with_its_part_of_the_periods) {
  Device device;
  device.run(100, 75, 80);
  const WorkShown large = device.work.shown(1), small = device.work.shown(2);
  EXPECT_NEAR(large.percent, 60, 25);
  EXPECT_NEAR(small.percent, 20, 25);
  EXPECT_LT(small.at_least, 20u);
  EXPECT_GT(small.at_most, 20u);
  EXPECT_LE(large.at_least, 60u);
  EXPECT_GE(large.at_most, 60u);
  EXPECT_EQ(large.window_ns, 19'800'000'000) << "since the first sample";
}

// Violations are reported on the basis of these bounds.
TEST(WorkSamples, contain_the_true_part_within_their_bounds) {
  for (const unsigned part : {5u, 25u, 50u, 75u, 95u}) {
    Device device;
    device.random.seed(part);
    device.run(100, part, 98);
    for (int i = 0; i < 400; ++i) {
      device.run(5, part, 98);
      const WorkShown shown = device.work.shown(1);
      const double truth = part * 0.98;
      EXPECT_LT(shown.at_least, truth + 1) << part;
      EXPECT_GT(shown.at_most + 1, truth) << part;
      EXPECT_LE(shown.at_least, shown.at_most);
    }
  }
}

TEST(WorkSamples, prove_that_a_process_uses_the_device_for_seconds) {
  Device device;
  device.run(100, 20, 98);
  device.run(120, 100, 98);
  EXPECT_GT(device.work.shown(1).at_least, 80u);
  EXPECT_LT(device.work.shown(2).at_most, 15u);
}

TEST(WorkSamples, drop_old_samples_of_an_idle_process) {
  Device device;
  device.run(100, 50, 98);
  device.run(121, 50, 0);
  const WorkShown shown = device.work.shown(1);
  EXPECT_EQ(shown.percent, 0u);
  EXPECT_EQ(shown.at_least, 0u);
}

TEST(WorkSamples, count_periods_without_work) {
  Device device;
  for (int i = 0; i < 24; ++i) {  // Busy for 0.4 s of each second.
    device.run(2, 100, 98);
    device.run(3, 100, 0);
  }
  EXPECT_NEAR(device.work.shown(1).percent, 40, 10);
  EXPECT_LT(device.work.shown(1).at_least, 40u);
}

TEST(WorkSamples, judge_a_new_process_by_its_own_time) {
  WorkSamples work;
  uint64_t now = 1000 * second;
  const unsigned first[] = {1}, both[] = {1, 3};
  for (int i = 0; i < 60; ++i) work.add(std::vector{sample(1, now += second / 5, 98)}, first, now);
  work.add({}, both, now);
  for (int i = 0; i < 5; ++i) work.add(std::vector{sample(3, now += second / 5, 98)}, both, now);
  EXPECT_EQ(work.shown(3).percent, 98u);
  EXPECT_EQ(work.shown(3).window_ns, 1'000'000'000);
  EXPECT_EQ(work.shown(4), WorkShown{}) << "not listed";
}

TEST(WorkSamples, trust_a_driver_that_counts_each_process_immediately) {
  WorkSamples work;
  const unsigned pids[] = {1, 2};
  work.add(std::vector{sample(1, 10 * second, 60), sample(2, 10 * second, 20)}, pids, 10 * second);
  EXPECT_EQ(work.shown(1), (WorkShown{60, true, 60, 60, 75, 0}));
  EXPECT_EQ(work.shown(2), (WorkShown{20, true, 20, 20, 25, 0}));
  work.add(std::vector{sample(1, 12 * second, 90)}, pids, 13 * second);
  EXPECT_EQ(work.shown(1).percent, 90u);
  EXPECT_EQ(work.shown(2), WorkShown{}) << "its last sample is old";
}

TEST(WorkSamples, clip_hostile_samples) {
  WorkSamples work;
  const unsigned pids[] = {1};
  work.add(std::vector{sample(1, UINT64_MAX, 4'000'000'000u), sample(1, 0, 7)}, pids, 5);
  work.add(std::vector{sample(1, 5, 50)}, pids, 6);
  EXPECT_LE(work.shown(1).percent, 100u);
}

}  // namespace
}  // namespace carve::node
