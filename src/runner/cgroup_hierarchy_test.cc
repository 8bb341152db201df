#include "runner/cgroup_hierarchy.h"

#include <gtest/gtest.h>

namespace carve::runner {
namespace {

OwnCgroup own_cgroup(CgroupVersion version, std::string directory) { return {version, std::move(directory)}; }

constexpr const char* v1_mounts =
    "22 1 0:21 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
constexpr const char* v2_mount = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(CgroupHierarchy, version_1_has_one_hierarchy_per_controller) {
  const OwnCgroups found =
      find_own_cgroups(v1_mounts, "5:memory:/a/b\n4:cpuset:/\n3:cpu,cpuacct:/a\n1:name=systemd:/\n");
  EXPECT_EQ(found.cpu, own_cgroup(CgroupVersion::v1, "/sys/fs/cgroup/cpu,cpuacct/a"));
  EXPECT_EQ(found.memory, own_cgroup(CgroupVersion::v1, "/sys/fs/cgroup/memory/a/b"));
}

TEST(CgroupHierarchy, version_2_has_one_tree) {
  const OwnCgroups found =
      find_own_cgroups("41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
                       "0::/system.slice/carve-controller.service\n");
  const OwnCgroup expected =
      own_cgroup(CgroupVersion::v2, "/sys/fs/cgroup/system.slice/carve-controller.service");
  EXPECT_EQ(found.cpu, expected);
  EXPECT_EQ(found.memory, expected);
}

TEST(CgroupHierarchy, a_hybrid_machine_has_its_controllers_in_version_1) {
  const std::string cgroup = "2:memory:/m\n1:cpu,cpuacct:/\n0::/u\n";
  const OwnCgroups found = find_own_cgroups(std::string(v2_mount) + v1_mounts, cgroup);
  EXPECT_EQ(found.cpu, own_cgroup(CgroupVersion::v1, "/sys/fs/cgroup/cpu,cpuacct"));
  EXPECT_EQ(found.memory, own_cgroup(CgroupVersion::v1, "/sys/fs/cgroup/memory/m"));
}

TEST(CgroupHierarchy, paths_are_relative_to_the_mounted_part_of_a_hierarchy) {
  const char* mount = "41 31 0:38 /docker/1a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(find_own_cgroups(mount, "0::/docker/1a/x\n").cpu->directory, "/sys/fs/cgroup/x");
  EXPECT_EQ(find_own_cgroups(mount, "0::/docker/1a\n").cpu->directory, "/sys/fs/cgroup");
  EXPECT_EQ(find_own_cgroups(mount, "0::/docker/1ab\n").cpu->directory, "/sys/fs/cgroup") << "another one";
  EXPECT_EQ(find_own_cgroups(mount, "0::/../other\n").cpu->directory, "/sys/fs/cgroup");
}

TEST(CgroupHierarchy, a_mount_point_may_contain_a_blank) {
  EXPECT_EQ(find_own_cgroups("1 2 0:1 / /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/\n").cpu->directory,
            "/a b");
}

TEST(CgroupHierarchy, finds_no_cgroup_without_a_mount_or_a_line) {
  EXPECT_EQ(find_own_cgroups("", "0::/\n"), OwnCgroups{});
  EXPECT_EQ(find_own_cgroups(v2_mount, ""), OwnCgroups{});
  EXPECT_EQ(find_own_cgroups("nonsense - cgroup\n", "nonsense\n"), OwnCgroups{});
  EXPECT_EQ(find_own_cgroups(v1_mounts, "3:cpu,cpuacct:/\n").memory, std::nullopt);
}

}  // namespace
}  // namespace carve::runner
