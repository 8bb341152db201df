#include "node/api/reply.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

constexpr QueryNumber devices = {"devices", 2, 16, "a plan can empty 1 to {} devices"};

TEST(Reply, accepts_a_number_in_the_query_or_rejects_it_with_the_possible_values) {
  EXPECT_EQ(queried("", devices), 2u);
  EXPECT_EQ(queried("devices=1", devices), 1u);
  EXPECT_EQ(queried("devices=16", devices), 16u);
  for (const char* query : {"devices=0", "devices=17", "devices=", "devices", "devices=-1", "devices=3x",
                            "devices=3&all=true", "seconds=3", "devices=99999999999999999999", "=3"}) {
    const auto number = queried(query, devices);
    ASSERT_FALSE(number) << query;
    EXPECT_EQ(number.error().problem.status, 400u) << query;
    EXPECT_EQ(number.error().problem.detail, "a plan can empty 1 to 16 devices: ?devices=2") << query;
  }
}

}  // namespace
}  // namespace carve::node
