#include "node/identity/identity.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

// A small machine: processes with parents, cgroups and pid namespaces.
struct Machine {
  struct Entry {
    pid_t parent;
    Cgroups cgroups = {{"", "/user"}};
    uint64_t pid_namespace = 1;
    uint64_t start = 100;
  };
  std::map<pid_t, Entry> processes;
  World world() const {
    World w;
    w.stat = [this](pid_t pid) -> std::optional<os::ProcessStat> {
      const auto found = processes.find(pid);
      if (found == processes.end()) return std::nullopt;
      return os::ProcessStat{{pid, found->second.start}, found->second.parent, 'S'};
    };
    w.cgroups = [this](pid_t pid) { return processes.contains(pid) ? processes.at(pid).cgroups : Cgroups{}; };
    w.pid_namespace = [this](pid_t pid) {
      return processes.contains(pid) ? processes.at(pid).pid_namespace : 0;
    };
    return w;
  }
  std::optional<size_t> slice(pid_t pid, const std::vector<SliceIdentity>& slices) const {
    std::vector<const SliceIdentity*> list;
    for (const auto& t : slices) list.push_back(&t);
    return slice_of(pid, list, world());
  }
};

TEST(Identity, is_decided_by_a_cgroup_that_the_agent_created) {
  Machine m{{{1, {0}},
             {10, {1, {{"", "/carve-1/a"}}}},
             {11, {1, {{"", "/carve-1/a/inner"}}}},
             {12, {1, {{"", "/carve-1/ab"}}}}}};
  std::vector<SliceIdentity> slices(2);
  slices[0].cgroup = "/carve-1/a";
  slices[1].cgroup = "/carve-1/ab";
  EXPECT_EQ(m.slice(10, slices), 0u);
  EXPECT_EQ(m.slice(11, slices), 0u);
  EXPECT_EQ(m.slice(12, slices), 1u);
  EXPECT_EQ(m.slice(1, slices), std::nullopt);
  EXPECT_EQ(m.slice(99, slices), std::nullopt);
}

TEST(Identity, of_a_container_requires_all_lines_that_are_specific_to_it) {
  const Cgroups agent = {{"", "/"}, {"memory", "/system/carved"}, {"cpu", "/"}};
  const Cgroups container = {{"", "/"}, {"memory", "/machine/libpod-1"}, {"cpu", "/machine/libpod-1"}};
  const Cgroups own = distinguishing(container, agent);
  EXPECT_EQ(own.size(), 2u);
  Machine m{{{1, {0}},
             {20, {1, container}},
             {21, {1, {{"", "/"}, {"memory", "/machine/libpod-1/sub"}, {"cpu", "/machine/libpod-1"}}}},
             {22, {1, {{"", "/"}, {"memory", "/machine/libpod-1"}, {"cpu", "/machine/libpod-2"}}}},
             {23, {1, agent}}}};
  std::vector<SliceIdentity> slices(1);
  slices[0].containers.push_back({{20, 100}, own, 0});
  EXPECT_EQ(m.slice(20, slices), 0u);
  EXPECT_EQ(m.slice(21, slices), 0u);
  EXPECT_EQ(m.slice(22, slices), std::nullopt);
  EXPECT_EQ(m.slice(23, slices), std::nullopt);
}

TEST(Identity, ignores_lines_shared_with_the_agent_or_above_it) {
  const Cgroups agent = {{"memory", "/a/b/carved"}, {"", "/x"}};
  EXPECT_TRUE(distinguishing({{"memory", "/a/b"}, {"", "/x"}, {"cpu", "/"}}, agent).empty());
  EXPECT_TRUE(distinguishing({{"memory", "/../escape"}}, agent).empty());
}

TEST(Identity, uses_the_pid_namespace_of_a_container_without_a_cgroup) {
  Machine m{{{1, {0}}, {30, {1, {{"", "/"}}, 7}}, {31, {1, {{"", "/"}}, 7}}, {32, {1, {{"", "/"}}, 1}}}};
  std::vector<SliceIdentity> slices(1);
  slices[0].containers.push_back({{30, 100}, {}, 7});
  EXPECT_EQ(m.slice(31, slices), 0u);
  EXPECT_EQ(m.slice(32, slices), std::nullopt);
}

TEST(Identity, includes_descendants_of_root_supervisor_and_members_but_not_the_supervisor) {
  Machine m{{{1, {0}}, {5, {1}}, {50, {5}}, {51, {50}}, {52, {5}}, {60, {1}}, {61, {60}}}};
  std::vector<SliceIdentity> slices(2);
  slices[0].supervisor = {5, 100};
  slices[0].root = {50, 100};
  slices[1].attached = {{60, 100}};
  EXPECT_EQ(m.slice(50, slices), 0u);
  EXPECT_EQ(m.slice(51, slices), 0u);
  EXPECT_EQ(m.slice(52, slices), 0u);  // An orphan whose parent is now the subreaper.
  EXPECT_EQ(m.slice(5, slices), std::nullopt);
  EXPECT_EQ(m.slice(61, slices), 1u);
}

TEST(Identity, distinguishes_processes_with_a_reused_pid) {
  Machine m{{{1, {0}}, {50, {1, {{"", "/"}}, 1, 999}}, {51, {50}}}};
  std::vector<SliceIdentity> slices(1);
  slices[0].root = {50, 100};
  EXPECT_EQ(m.slice(50, slices), std::nullopt);
  EXPECT_EQ(m.slice(51, slices), std::nullopt);
}

TEST(Identity, search_ends_at_the_first_ancestor_that_is_older_than_every_slice) {
  Machine m{{{1, {0, {}, 1, 1}},
             {5, {1, {}, 1, 40}},
             {6, {5, {}, 1, 50}},
             {7, {6, {}, 1, 60}},
             {8, {7, {}, 1, 70}}}};
  std::vector<SliceIdentity> slices(3);
  std::vector<pid_t> read;
  World world = m.world();
  world.stat = [&, stat = world.stat](pid_t pid) {
    read.push_back(pid);
    return stat(pid);
  };
  const auto reads_for = [&](pid_t pid) {
    read.clear();
    EXPECT_EQ(slice_of(pid, {&slices[0], &slices[1], &slices[2]}, world), std::nullopt);
    return read;
  };
  using Pids = std::vector<pid_t>;
  slices[0].root = {90, 60};
  EXPECT_EQ(reads_for(8), (Pids{8, 7, 6}));
  EXPECT_EQ(reads_for(5), Pids{5});
  slices[1].supervisor = {91, 50};
  EXPECT_EQ(reads_for(8), (Pids{8, 7, 6, 5}));
  slices[2].attached = {{3, 200}, {92, 40}};
  EXPECT_EQ(reads_for(8), (Pids{8, 7, 6, 5, 1}));
  slices[2].attached.clear();
  slices[2].containers.push_back({{93, 1}, {{"", "/machine/c"}}, 0});
  EXPECT_EQ(reads_for(8), (Pids{8, 7, 6, 5, 1}));
}

TEST(Identity, finds_a_process_whose_parent_ends_during_the_search) {
  Machine m{{{1, {0}}, {5, {1}}, {50, {5}}, {51, {50}}, {52, {51}}}};
  std::vector<SliceIdentity> slices(1);
  slices[0].supervisor = {5, 100};
  World world = m.world();
  world.stat = [&, stat = world.stat](pid_t pid) {
    if (pid == 50 && m.processes.erase(50) + m.processes.erase(51) > 0) m.processes.at(52).parent = 5;
    return stat(pid);
  };
  EXPECT_EQ(slice_of(52, {&slices[0]}, world), 0u);
  // /proc is mounted with options that hide this process's parent.
  m.processes[60] = {.parent = 59};
  EXPECT_EQ(m.slice(60, slices), std::nullopt);
}

}  // namespace
}  // namespace carve::node
