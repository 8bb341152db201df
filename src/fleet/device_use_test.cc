#include "fleet/device_use.h"

#include <gtest/gtest.h>

namespace carve::fleet {
namespace {

TEST(DeviceUse, removing_a_part_restores_the_previous_amounts) {
  const HeldPart parts[] = {{.memory = 4_GiB, .share = {3000}, .isolation = Isolation::memory_and_compute},
                            {.memory = 2_GiB, .share = {3000}},  // Its share is not enforced.
                            {.memory = 1_GiB, .isolation = Isolation::none},
                            {.memory = 1_GiB,
                             .share = {9000},
                             .isolation = Isolation::memory_and_compute,
                             .policy = Policy::native_burst_share}};
  DeviceUse use;
  for (const HeldPart& part : parts) add(use, part);
  EXPECT_EQ(use, (DeviceUse{8_GiB, {3000}, 4, 3, false}));
  for (const HeldPart& part : parts) remove(use, part);
  EXPECT_EQ(use, DeviceUse{});
  remove(use, parts[0]);
  EXPECT_EQ(use, DeviceUse{}) << "no amount is below 0";
}

TEST(DeviceUse, a_device_offers_its_remaining_capacity) {
  const GpuDevice device{.usable = 10_GiB, .context = 1_GiB, .migrates = true};
  const place::DeviceState state = state_of(device, {4_GiB, {3000}, 2, 1, false}, true);
  EXPECT_EQ(state.free, 6_GiB);
  EXPECT_EQ(state.free_share, Share{7000});
  EXPECT_TRUE(state.shared_out);
  EXPECT_FALSE(state_of(device, {4_GiB, {}, 2, 1, false}, true).shared_out) << "no compute is promised";
  EXPECT_FALSE(state_of(device, {4_GiB, {3000}, 2, 1, false}, false).shared_out);
  EXPECT_EQ(state_of(device, {12_GiB, {12'000}, 2, 1, false}, true).free, Bytes{}) << "the device shrank";
  EXPECT_EQ(state_of(device, {10_GiB, {}, 1, 1, true}, true).free_share, Share{});
  EXPECT_TRUE(is_overcommitted(device, {12_GiB, {}, 1, 1, false}));
  EXPECT_TRUE(is_overcommitted(device, {{}, {}, 17, 17, false}));
  EXPECT_FALSE(is_overcommitted(device, {10_GiB, {}, 17, 16, false}));
}

TEST(DeviceUse, a_node_with_several_models_joins_as_a_mixed_one) {
  place::Fleet fleet;
  GpuNode node{.name = "n1"};
  EXPECT_FALSE(*join(fleet, node)) << "it has no device";
  for (const char* model : {"A10", "A100", "A100"}) node.devices.push_back({.model = model, .usable = 8_GiB});
  const auto number = join(fleet, node);
  ASSERT_TRUE(number && *number);
  EXPECT_TRUE(fleet.node(**number).mixed);
  EXPECT_EQ(fleet.model_name(fleet.node(**number).model), "A100");
  const std::vector<DeviceUse> uses{{1_GiB, {}, 1, 1, false}, {}, {}};
  set_uses(fleet, **number, node, uses);
  EXPECT_EQ(fleet.devices(**number)[0].free, 7_GiB);
  EXPECT_EQ(fleet.model_name(fleet.devices(**number)[0].model), "A10") << "it keeps its model";
  for (unsigned i = 0; i < place::max_models; ++i) node.devices[0].model += "x", (void)join(fleet, node);
  EXPECT_EQ(join(fleet, node).error().substr(0, 43), "a cluster has at most 64 device models; A10");
}

}  // namespace
}  // namespace carve::fleet
