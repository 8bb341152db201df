#include "place/workload.h"

#include <gtest/gtest.h>

namespace carve::place {
namespace {

RequestShape asking(uint32_t share) {
  RequestShape a;
  a.share = {share};
  return a;
}

TEST(WorkloadModel, contains_the_types_that_arrived_and_their_frequency) {
  ArrivalCounts arrivals;
  for (int i = 0; i < 100; ++i) arrivals.count(asking(i % 4 == 0 ? 2500 : 5000));
  const WorkloadModel w = arrivals.workload();
  ASSERT_EQ(w.size(), 2u);
  EXPECT_EQ(w[0].shape.share, Share{5000});
  EXPECT_EQ(w[0].weight, certain / 4 * 3);
  EXPECT_EQ(w[1].weight, certain / 4);
}

TEST(WorkloadModel, forgets_old_arrivals_gradually) {
  ArrivalCounts arrivals(100);
  for (int i = 0; i < 1000; ++i) arrivals.count(asking(2500));
  for (int i = 0; i < 300; ++i) arrivals.count(asking(5000));
  EXPECT_EQ(arrivals.workload()[0].shape.share, Share{5000});
}

TEST(WorkloadModel, has_a_limited_size_for_any_stream_of_requests) {
  ArrivalCounts arrivals;
  for (int i = 0; i < 50; ++i) arrivals.count(asking(7));
  for (uint32_t i = 0; i < 5000; ++i) {
    RequestShape a = asking(1);
    a.cpu_milli = i;
    arrivals.count(a);
  }
  EXPECT_LE(arrivals.workload().size(), max_types);
  EXPECT_EQ(arrivals.workload()[0].shape.share, Share{7}) << "the popular type is kept";
}

TEST(WorkloadModel, is_typical_if_it_contains_the_most_popular_types_up_to_the_coverage) {
  WorkloadModel w;
  for (const int64_t parts : {50, 30, 16, 3, 1})
    w.push_back({asking(static_cast<uint32_t>(parts)), certain / 100 * parts});
  const WorkloadModel t = typical(w, {9500});
  ASSERT_EQ(t.size(), 3u);
  int64_t sum = 0;
  for (const Type& type : t) sum += type.weight;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(certain), 10);
}

TEST(WorkloadModel, merges_types_that_differ_only_in_host_memory) {
  WorkloadModel w = {{asking(5), certain / 4}, {asking(9), certain / 2}, {asking(5), certain / 4}};
  w[0].shape.host_memory = 1_GiB;
  w[2].shape.host_memory = 2_GiB;
  const WorkloadModel merged = without_host_memory(w);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].weight, merged[1].weight);
}

}  // namespace
}  // namespace carve::place
