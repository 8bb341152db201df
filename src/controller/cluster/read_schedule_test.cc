#include "controller/cluster/read_schedule.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using kubernetes::second_ns;
using End = ReadSchedule::End;

TEST(ReadSchedule, reads_every_node_once_per_interval_and_at_most_some_at_a_time) {
  ReadSchedule schedule({.max_running = 50}, 1);
  for (int i = 0; i < 5000; ++i) schedule.add("n" + std::to_string(i), 0);
  std::map<std::string, int> reads;
  std::multimap<kubernetes::Nanoseconds, std::string> ends;
  size_t in_one_second = 0, most = 0;
  kubernetes::Nanoseconds second = 0;
  for (kubernetes::Nanoseconds now = 0; now < 182 * second_ns; now += second_ns / 100) {
    for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin()))
      schedule.ended(ends.begin()->second, End::complete, now);
    for (const std::string& node : schedule.begin(now)) {
      ++reads[node];
      ends.emplace(now + second_ns / 10, node);
      if (now / second_ns != second) in_one_second = 0;
      second = now / second_ns;
      most = std::max(most, ++in_one_second);
    }
    ASSERT_LE(schedule.running(), 50u);
  }
  ASSERT_EQ(reads.size(), 5000u);
  for (const auto& [node, count] : reads) EXPECT_TRUE(count >= 3 && count <= 4) << node << ": " << count;
  EXPECT_LT(most, 200u) << "5,000 nodes in 60 s are 83 a second; two cycles may overlap";
}

TEST(ReadSchedule, reads_a_failing_node_less_often_until_it_changes) {
  ReadSchedule schedule({}, 1);
  schedule.add("n1", 0);
  kubernetes::Nanoseconds now = 0;
  const auto wait_for_read = [&] {
    const auto from = now;
    while (schedule.begin(now).empty()) now = std::max(now + 1, schedule.wake_at(now));
    return now - from;
  };
  wait_for_read();
  kubernetes::Nanoseconds last = 0;
  for (int i = 0; i < 8; ++i) {
    schedule.ended("n1", End::failed, now);
    last = wait_for_read();
    EXPECT_LE(last, 600 * second_ns);
  }
  EXPECT_GE(last, 300 * second_ns);
  schedule.ended("n1", End::failed, now);
  schedule.hurry("n1", now);
  EXPECT_LE(wait_for_read(), 5 * second_ns);
  schedule.ended("n1", End::partial, now);
  EXPECT_LE(wait_for_read(), second_ns);
  schedule.ended("n1", End::complete, now);
  EXPECT_LE(wait_for_read(), 60 * second_ns);
}

TEST(ReadSchedule, never_reads_a_node_twice_at_a_time_even_if_it_comes_back) {
  ReadSchedule schedule({}, 1);
  schedule.add("n1", 0);
  ASSERT_THAT(schedule.begin(60 * second_ns), testing::ElementsAre("n1"));
  schedule.remove("n1");
  schedule.add("n1", 60 * second_ns);
  EXPECT_THAT(schedule.begin(600 * second_ns), testing::IsEmpty());
  schedule.ended("n1", End::complete, 600 * second_ns);
  EXPECT_THAT(schedule.begin(700 * second_ns), testing::ElementsAre("n1"));
  schedule.remove("n1");
  schedule.ended("n1", End::failed, 700 * second_ns);
  EXPECT_THAT(schedule.begin(9000 * second_ns), testing::IsEmpty());
  EXPECT_EQ(schedule.running(), 0u);
}

}  // namespace
}  // namespace carve::controller
