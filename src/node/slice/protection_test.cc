#include "node/slice/protection.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

TEST(protection, tolerates_one_context_and_at_least_64_mib) {
  EXPECT_EQ(tolerance({256ull << 20}).count, 256ull << 20);
  EXPECT_EQ(tolerance({0}).count, 64ull << 20);
  EXPECT_EQ(tolerance({63ull << 20}).count, 64ull << 20);
}

TEST(protection, finds_a_cgroup_below_the_mount) {
  const CgroupTree whole{"/sys/fs/cgroup", ""}, part{"/sys/fs/cgroup/unified", "/docker/1"};
  EXPECT_EQ(cgroup_path(whole, "/kubepods/pod1/c"), "/sys/fs/cgroup/kubepods/pod1/c");
  EXPECT_EQ(cgroup_path(part, "/docker/1/carve/a"), "/sys/fs/cgroup/unified/carve/a");
}

// The root would contain processes of other slices, and "/../c" is outside of the agent's cgroup namespace.
TEST(protection, rejects_the_root_and_what_is_outside) {
  const CgroupTree whole{"/sys/fs/cgroup", ""}, part{"/sys/fs/cgroup", "/docker/1"};
  for (const char* line : {"", "/", "kubepods"}) EXPECT_EQ(cgroup_path(whole, line), "") << line;
  for (const char* line : {"/docker/1", "/docker/1/", "/docker/12/a", "/docker/2/a", "/"})
    EXPECT_EQ(cgroup_path(part, line), "") << line;
  for (const char* line : {"/../c", "/a/../../c"}) EXPECT_EQ(cgroup_path(whole, line), "") << line;
}

}  // namespace
}  // namespace carve::node
