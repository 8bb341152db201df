// The memory that graphs need at the same time.
#include "sim/libcuda/graph_space.h"

#include <gtest/gtest.h>

namespace carve::sim {
namespace {

TEST(GraphSpace, memory_is_reused_only_after_the_node_that_freed_it) {
  const Waits chain = {{}, {0}, {1}, {2}};
  EXPECT_EQ(space_of(chain, {{0, 1, 100}, {2, 3, 100}}, 1), 100u);
  EXPECT_EQ(space_of(chain, {{0, 3, 100}, {1, 2, 100}}, 1), 200u);
  const Waits side_by_side = {{}, {0}, {}, {2}};
  EXPECT_EQ(space_of(side_by_side, {{0, 1, 100}, {2, 3, 100}}, 1), 200u);
  EXPECT_EQ(space_of({}, {}, 1), 0u);
}

TEST(GraphSpace, an_allocation_reuses_the_smallest_block_that_is_large_enough) {
  const Waits chain = {{}, {0}, {1}, {2}, {3}, {4}, {5}};
  EXPECT_EQ(space_of(chain, {{0, 1, 100}, {2, 3, 200}}, 1), 300u);
  // Blocks of 300 and 100 are free. The allocation of 80 reuses the 100, so that the allocation of 250 can
  // reuse the 300.
  EXPECT_EQ(space_of(chain, {{0, 2, 300}, {1, 2, 100}, {3, 6, 80}, {4, 6, 250}}, 1), 400u);
}

TEST(GraphSpace, sizes_of_blocks_are_multiples_of_the_step) {
  EXPECT_EQ(space_of({{}, {0}}, {{0, 1, 513}}, 512), 1024u);
}

}  // namespace
}  // namespace carve::sim
