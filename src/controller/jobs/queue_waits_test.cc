#include "controller/jobs/queue_waits.h"

#include <gtest/gtest.h>

namespace carve::controller {
namespace {

constexpr int64_t second_ns = 1'000'000'000;

TEST(QueueWaits, count_the_wait_of_each_admitted_job) {
  QueueWaits waits;
  waits.admitted("q", 2 * second_ns);
  waits.admitted("q", 50'000'000);
  waits.admitted("q", 100'000 * second_ns);
  waits.admitted("q", -5) /* The clock was stepped. */;
  const auto queues = waits.queues();
  const auto counts = queues.at("q").waits.counts();
  EXPECT_EQ(counts[0], 2u);
  EXPECT_EQ(counts[3], 1u) << "up to 5 s";
  EXPECT_EQ(counts.back(), 1u) << "more than a day";
  EXPECT_EQ(queues.at("q").waits.sum_ms(), 2'000u + 50 + 100'000'000);
}

TEST(QueueWaits, forget_deleted_queues) {
  QueueWaits waits;
  waits.admitted("old", second_ns);
  waits.admitted("q", second_ns);
  waits.replace({{"q", 7}, {"empty", 0}});
  const auto queues = waits.queues();
  EXPECT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues.at("q").oldest_ns, 7);
  EXPECT_EQ(queues.at("q").waits.counts()[2], 1u) << "its histogram is kept";
  EXPECT_EQ(queues.at("empty").oldest_ns, 0);
}

}  // namespace
}  // namespace carve::controller
