#include "place/workload.h"

#include <gtest/gtest.h>

namespace carve::place {
namespace {

Ask asking(uint32_t share) {
  Ask a;
  a.share = {share};
  return a;
}

TEST(Workload, learns_what_arrived_and_how_often) {
  Census census;
  for (int i = 0; i < 100; ++i) census.count(asking(i % 4 == 0 ? 2500 : 5000));
  const Workload w = census.workload();
  ASSERT_EQ(w.size(), 2u);
  EXPECT_EQ(w[0].ask.share, Share{5000});
  EXPECT_EQ(w[0].weight, certain / 4 * 3);
  EXPECT_EQ(w[1].weight, certain / 4);
}

TEST(Workload, what_arrived_long_ago_fades) {
  Census census(100);
  for (int i = 0; i < 1000; ++i) census.count(asking(2500));
  for (int i = 0; i < 300; ++i) census.count(asking(5000));
  EXPECT_EQ(census.workload()[0].ask.share, Share{5000});
}

TEST(Workload, a_stream_of_oddities_cannot_grow_it) {
  Census census;
  for (int i = 0; i < 50; ++i) census.count(asking(7));
  for (uint32_t i = 0; i < 5000; ++i) {
    Ask a = asking(1);
    a.cpu_milli = i;
    census.count(a);
  }
  EXPECT_LE(census.workload().size(), most_types);
  EXPECT_EQ(census.workload()[0].ask.share, Share{7}) << "the popular stays";
}

TEST(Workload, the_typical_are_the_popular_up_to_the_coverage) {
  Workload w;
  for (const int64_t parts : {50, 30, 16, 3, 1})
    w.push_back({asking(static_cast<uint32_t>(parts)), certain / 100 * parts});
  const Workload t = typical(w, {9500});
  ASSERT_EQ(t.size(), 3u);
  int64_t sum = 0;
  for (const Type& type : t) sum += type.weight;
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(certain), 10);
}

TEST(Workload, host_memory_makes_no_type_of_its_own_for_those_who_do_not_ask_for_it) {
  Workload w = {{asking(5), certain / 4}, {asking(9), certain / 2}, {asking(5), certain / 4}};
  w[0].ask.host_memory = 1_GiB;
  w[2].ask.host_memory = 2_GiB;
  const Workload merged = without_host_memory(w);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].weight, merged[1].weight);
}

}  // namespace
}  // namespace carve::place
