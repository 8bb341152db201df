// The memory that graphs need at the same time.
#include "sim/libcuda/graph_space.h"

#include <gtest/gtest.h>

namespace carve::sim {
namespace {

TEST(GraphSpace, memory_is_used_again_only_behind_the_node_that_freed_it) {
  const Waits chain = {{}, {0}, {1}, {2}};
  EXPECT_EQ(space_of(chain, {{0, 1, 100}, {2, 3, 100}}, 1), 100u);
  EXPECT_EQ(space_of(chain, {{0, 3, 100}, {1, 2, 100}}, 1), 200u);
  const Waits side_by_side = {{}, {0}, {}, {2}};
  EXPECT_EQ(space_of(side_by_side, {{0, 1, 100}, {2, 3, 100}}, 1), 200u);
  EXPECT_EQ(space_of({}, {}, 1), 0u);
}

TEST(GraphSpace, a_larger_allocation_takes_a_new_place_and_a_smaller_one_the_tightest) {
  const Waits chain = {{}, {0}, {1}, {2}, {3}, {4}, {5}};
  EXPECT_EQ(space_of(chain, {{0, 1, 100}, {2, 3, 200}}, 1), 300u);
  // Both 300 and 100 are free: 80 takes the 100, so that 250 finds the 300.
  EXPECT_EQ(space_of(chain, {{0, 2, 300}, {1, 2, 100}, {3, 6, 80}, {4, 6, 250}}, 1), 400u);
}

TEST(GraphSpace, places_come_at_steps) { EXPECT_EQ(space_of({{}, {0}}, {{0, 1, 513}}, 512), 1024u); }

}  // namespace
}  // namespace carve::sim
