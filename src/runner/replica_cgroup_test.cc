#include "runner/replica_cgroup.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/process.h"

namespace carve::runner {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A folder with the files of a v2 cgroup tree but without a kernel: written values are kept.
struct FakeTree {
  std::filesystem::path root;
  FakeTree() {
    char name[] = "/tmp/carve-cgroups-XXXXXX";
    root = mkdtemp(name);
    add_files(root);
  }
  ~FakeTree() { std::filesystem::remove_all(root); }
  // Adds the kernel's files of a cgroup, which is created if it is missing.
  static void add_files(const std::filesystem::path& directory) {
    std::filesystem::create_directories(directory);
    for (const char* file : {"cgroup.procs", "cgroup.subtree_control", "cpu.max", "memory.max"})
      std::ofstream(directory / file).flush();
  }
  OwnCgroups own() const {
    return {.cpu = OwnCgroup{CgroupVersion::v2, root}, .memory = OwnCgroup{CgroupVersion::v2, root}};
  }
  // Returns the folder of the replicas, with the kernel's files.
  std::filesystem::path replicas() const {
    const ReplicaCgroups makes_the_first(own(), "/programs");
    add_files(root / "carve-replicas");
    const ReplicaCgroups makes_the_second(own(), "/programs");
    for (const auto& entry : std::filesystem::directory_iterator(root / "carve-replicas"))
      if (entry.is_directory()) {
        add_files(entry.path());
        return entry.path();
      }
    return {};
  }
};

std::string text_of_file(const std::filesystem::path& path) { return os::read_file(path).value_or("(none)"); }

TEST(ReplicaCgroup, both_limits_use_one_cgroup_in_version_2) {
  const FakeTree tree;
  const auto replicas = tree.replicas();
  FakeTree::add_files(replicas / "a-1-0");
  ReplicaCgroups groups(tree.own(), "/programs");
  EXPECT_EQ(groups.problems().cpu, "");
  EXPECT_EQ(groups.problems().memory, "");
  const auto made = groups.make("a-1-0", {.cpu_milli = 1500, .memory_bytes = 1 << 26}, false);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->process_files, SizeIs(1));
  EXPECT_EQ(text_of_file(replicas / "a-1-0/cpu.max"), "150000 100000");
  EXPECT_EQ(text_of_file(replicas / "a-1-0/memory.max"), "67108864");
  EXPECT_EQ(made->memory_events, replicas / "a-1-0/memory.events");
}

TEST(ReplicaCgroup, a_replica_with_a_slice_uses_the_slices_cgroup_in_version_2) {
  const FakeTree tree;
  const auto replicas = tree.replicas();
  ReplicaCgroups groups(tree.own(), "/programs");
  EXPECT_THAT(groups.problems().with_slice, HasSubstr("the agent moves the slice into another cgroup"));
  const auto made = groups.make("a-1-0", {.cpu_milli = 1500}, true);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->process_files, IsEmpty());
}

TEST(ReplicaCgroup, a_tree_that_cannot_be_written_is_reported_without_a_failure) {
  ReplicaCgroups groups({.cpu = OwnCgroup{CgroupVersion::v1, "/nowhere/cpu"}, .memory = {}}, "/programs");
  EXPECT_THAT(groups.problems().cpu, HasSubstr("cannot create the cgroup /nowhere/cpu/carve-replicas"));
  EXPECT_EQ(groups.problems().memory, "no cgroup hierarchy is mounted");
  const auto made = groups.make("a-1-0", {.cpu_milli = 1, .memory_bytes = 1}, false);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->process_files, IsEmpty());
}

TEST(ReplicaCgroup, counts_the_processes_killed_by_a_memory_limit) {
  EXPECT_EQ(memory_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), 2u);
  EXPECT_EQ(memory_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), 5u);
  EXPECT_EQ(memory_kills(""), 0u);
}

// Tests in the kernel's own hierarchy, if this process may write to it.
class RealCgroups : public testing::Test {
 protected:
  void SetUp() override {
    const ReplicaCgroups probe(own, "/programs of this test");
    if (!probe.problems().memory.empty()) GTEST_SKIP() << probe.problems().memory;
    if (own.memory->version != CgroupVersion::v1)
      GTEST_SKIP() << "this machine's memory controller uses cgroup version 2; this test needs version 1";
  }
  static std::string limit_of(const JoinedCgroups& made) {
    const std::string folder = made.memory_events.substr(0, made.memory_events.rfind('/'));
    return text_of_file(folder + "/memory.limit_in_bytes");
  }
  const OwnCgroups own = read_own_cgroups();
};

TEST_F(RealCgroups, a_joined_cgroup_is_removed_after_its_process_has_ended) {
  ReplicaCgroups groups(own, "/programs of this test");
  const auto made = groups.make("a-1-0", {.memory_bytes = 64 << 20}, true);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_THAT(made->process_files, SizeIs(1));
  EXPECT_EQ(limit_of(*made), "67108864\n");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char byte = 0;
    if (write(made->process_files[0].get(), "0", 1) != 1) _exit(1);
    (void)!read(ends[0], &byte, 1);  // Returns when the parent has looked.
    _exit(0);
  }
  close(ends[0]);
  const std::string folder = made->memory_events.substr(0, made->memory_events.rfind('/'));
  while (text_of_file(folder + "/cgroup.procs").empty()) usleep(1000);
  EXPECT_EQ(text_of_file(folder + "/cgroup.procs"), std::to_string(child) + "\n");
  groups.remove("a-1-0");
  EXPECT_TRUE(std::filesystem::exists(folder)) << "the cgroup still has a process";
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  groups.remove("b-1-0");
  EXPECT_FALSE(std::filesystem::exists(folder)) << "the cgroup is removed with the next one";
}

TEST_F(RealCgroups, cgroups_of_a_killed_launcher_are_reused_or_removed) {
  std::string folder;
  {
    ReplicaCgroups killed(own, "/programs of this test");
    const auto made = killed.make("a-1-0", {.memory_bytes = 64 << 20}, false);
    ASSERT_TRUE(made);
    const auto again = killed.make("a-1-0", {.memory_bytes = 128 << 20}, false);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(limit_of(*again), "134217728\n");
    folder = made->memory_events.substr(0, made->memory_events.rfind('/'));
  }
  EXPECT_TRUE(std::filesystem::exists(folder));
  const ReplicaCgroups next(own, "/programs of this test");
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace carve::runner
