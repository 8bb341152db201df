#include "node/slots/slot_peer.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

PodOfProcess in(std::set<std::string> uids) { return {.uids = std::move(uids), .container = {}}; }

TEST(SlotPeer, is_classified_first_by_the_pod_in_its_cgroup) {
  EXPECT_EQ(judge_slot_peer(in({"a"}), "a", true), SlotPeer::inside);
  EXPECT_EQ(judge_slot_peer(in({"a"}), "a", false), SlotPeer::new_container);
  EXPECT_EQ(judge_slot_peer(in({"b"}), "a", false), SlotPeer::other_pod);
  EXPECT_EQ(judge_slot_peer(in({"b"}), "a", true), SlotPeer::other_pod);
  EXPECT_EQ(judge_slot_peer(in({"a", "b"}), "a", true), SlotPeer::other_pod);
  EXPECT_EQ(judge_slot_peer(in({}), "a", true), SlotPeer::inside);
  EXPECT_EQ(judge_slot_peer(in({}), "a", false), SlotPeer::unknown);
}

TEST(SlotPeer, finds_the_topmost_ancestor_in_a_container_as_its_first_process) {
  // 2 (runtime) -> 10 (first process) -> 11 -> 12, which is in a cgroup below the container's.
  World world;
  world.stat = [](pid_t pid) -> std::optional<os::ProcessStat> {
    const std::map<pid_t, pid_t> parents{{2, 1}, {10, 2}, {11, 10}, {12, 11}};
    const auto found = parents.find(pid);
    if (found == parents.end()) return std::nullopt;
    os::ProcessStat stat;
    stat.id = {pid, static_cast<uint64_t>(pid)};
    stat.parent = found->second;
    return stat;
  };
  world.cgroups = [](pid_t pid) -> Cgroups {
    return {{"", pid < 10 ? "/system" : pid == 12 ? "/kubepods/poda/c/sub" : "/kubepods/poda/c"}};
  };
  const Cgroups container{{"", "/kubepods/poda/c"}};
  EXPECT_EQ(first_process_in({12, 12}, container, world), (os::ProcessId{10, 10}));
  EXPECT_EQ(first_process_in({10, 10}, container, world), (os::ProcessId{10, 10}));
  EXPECT_EQ(first_process_in({77, 77}, container, world), (os::ProcessId{77, 77})) << "it has ended";
}

}  // namespace
}  // namespace carve::node
