#include "fleet/answered_node.h"

#include <gtest/gtest.h>

namespace carve::fleet {
namespace {

objects::NodeStatus status_of(std::vector<std::string> policies) {
  objects::NodeStatus out;
  for (const std::string& policy : policies)
    out.devices.push_back({.index = static_cast<uint32_t>(out.devices.size()),
                           .uuid = "GPU-00000000-0000-0000-0000-000000000001",
                           .name = "NVIDIA A10",
                           .usable_bytes = 8ull << 30,
                           .free_bytes = 6ull << 30,
                           .context_bytes = 256 << 20,
                           .slices = 2,
                           .isolated_slices = 1,
                           .free_share_bp = 7000,
                           .policy = policy,
                           .migrates = true});
  return out;
}

TEST(AnsweredNode, has_the_settings_and_devices_of_its_status) {
  objects::NodeStatus status = status_of({"fixed-share"});
  status.mode.effective = "memory";
  status.memory_unit.effective = "128MiB";
  status.placement = "spread";
  status.contexts_in_slice = true;
  status.admits_best_effort = false;
  status.cpu_milli = 8000;
  status.devices[0].health.reason = "lost from the bus";
  const auto node = read_node("n1", {{"carve.dev/mode", "memory"}}, status);
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->kind, (NodeKind{NodeMode::memory, true, Policy::fixed_share, MemoryUnit::mib_128}));
  EXPECT_EQ(node->placement, Strategy::spread);
  EXPECT_TRUE(node->refuses_best_effort);
  EXPECT_EQ(node->cpu_milli, 8000u);
  const GpuDevice& device = node->devices.at(0);
  EXPECT_EQ(device.usable, 8_GiB);
  EXPECT_EQ(device.context, 256_MiB);
  EXPECT_TRUE(device.migrates);
  EXPECT_EQ(device.trouble, "lost from the bus");
  EXPECT_EQ(device_uses(status).at(0), (DeviceUse{2_GiB, {3000}, 2, 1, false}));
  status.contexts_in_slice = false;
  EXPECT_EQ(read_node("n1", {}, status)->devices.at(0).context, Bytes{});
}

TEST(AnsweredNode, follows_the_policy_that_all_devices_have) {
  const auto read = [](const objects::NodeStatus& status) { return *read_node("n1", {}, status); };
  EXPECT_EQ(read(status_of({"native-burst-share", "native-burst-share"})).kind.policy,
            Policy::native_burst_share);
  const GpuNode mixed = read(status_of({"native-burst-share", "fixed-share"}));
  EXPECT_EQ(mixed.kind.policy, std::nullopt);
  EXPECT_EQ(mixed.devices[0].policy, Policy::native_burst_share);
  objects::NodeStatus each = status_of({"fixed-share"});
  each.has_policy_per_slice = true;
  EXPECT_EQ(read(each).kind.policy, std::nullopt);
  EXPECT_EQ(read(each).devices[0].policy, std::nullopt) << "a slice may have any policy there";
}

TEST(AnsweredNode, an_agents_answer_is_checked) {
  EXPECT_EQ(read_node("n1", {}, status_of(std::vector<std::string>(33))).error(),
            "it has 33 devices; a node can have at most 32");
  objects::NodeStatus status = status_of({"fixed-share", "fixed-share"});
  status.links = {"X NV4", "NV4 X"};
  EXPECT_EQ(read_node("n1", {}, status)->links->link(0, 1), place::Link::nvlink);
  status.links = {"X"};
  EXPECT_FALSE(read_node("n1", {}, status)->links) << "they are unknown";
  status.devices[0].free_bytes = 100ull << 30;
  status.devices[0].free_share_bp = 20'000;
  EXPECT_EQ(device_uses(status).at(0), (DeviceUse{{}, {}, 2, 1, false}));
}

}  // namespace
}  // namespace carve::fleet
