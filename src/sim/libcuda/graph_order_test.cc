// Orders and lanes of graphs, on small hand-written graphs and on random ones.
#include "sim/libcuda/graph_order.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace carve::sim {
namespace {

TEST(GraphOrder, a_node_comes_after_all_that_it_waits_for_and_a_cycle_has_no_order) {
  std::vector<unsigned> order;
  EXPECT_TRUE(order_of({{2}, {0}, {}}, &order));
  EXPECT_EQ(order, (std::vector<unsigned>{2, 0, 1}));
  EXPECT_TRUE(order_of({}, &order));
  EXPECT_FALSE(order_of({{1}, {0}}, &order));
  EXPECT_FALSE(order_of({{0}}, &order));
  EXPECT_FALSE(order_of({{}, {0, 2}, {1}}, &order));
}

TEST(GraphOrder, a_chain_takes_one_lane_and_branches_take_several) {
  EXPECT_EQ(lanes_of({{}, {0}, {1}}, 8), (std::vector<unsigned>{0, 0, 0}));
  EXPECT_EQ(lanes_of({{}, {0}, {0}, {1, 2}}, 8), (std::vector<unsigned>{0, 0, 1, 0}));
  EXPECT_EQ(lanes_of({{}, {}, {}, {}}, 2), (std::vector<unsigned>{0, 1, 0, 1}));
}

TEST(GraphOrder, ends_are_the_nodes_that_no_other_node_waits_for) {
  EXPECT_EQ(ends_of({{}, {0}, {0}, {2}}), (std::vector<unsigned>{1, 3}));
  EXPECT_TRUE(ends_of({}).empty());
}

TEST(GraphOrder, predecessors_are_found_through_any_number_of_steps) {
  const Waits waits = {{}, {0}, {1}, {}, {3}};
  EXPECT_TRUE(all_before(waits, {0, 2}, {2}));
  EXPECT_FALSE(all_before(waits, {3}, {2}));
  EXPECT_TRUE(all_before(waits, {3, 0}, {2, 4}));
  EXPECT_TRUE(all_before(waits, {}, {}));
}

// A thousand random graphs: the order is valid, lanes are below the limit and no lane is empty.
TEST(GraphOrder, every_acyclic_graph_has_an_order_and_lanes) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const unsigned n = random() % 40 + 1, most = random() % 8 + 1;
    Waits waits(n);
    for (unsigned i = 1; i < n; ++i)
      for (unsigned w = 0; w < i; ++w)
        if (random() % 8 == 0) waits[i].push_back(w);
    std::vector<unsigned> order;
    ASSERT_TRUE(order_of(waits, &order));
    std::map<unsigned, unsigned> place;
    for (unsigned i = 0; i < n; ++i) place[order[i]] = i;
    ASSERT_EQ(place.size(), n);
    for (unsigned i = 0; i < n; ++i)
      for (unsigned w : waits[i]) ASSERT_LT(place[w], place[i]);
    unsigned highest = 0;
    std::map<unsigned, unsigned> used;
    for (unsigned lane : lanes_of(waits, most)) highest = std::max(highest, lane), ++used[lane];
    ASSERT_LT(highest, most);
    ASSERT_EQ(used.size(), highest + 1);
  }
}

}  // namespace
}  // namespace carve::sim
