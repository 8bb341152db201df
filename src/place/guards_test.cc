#include "place/guards.h"

#include <gtest/gtest.h>

#include "place/engine.h"

namespace carve::place {
namespace {

RequestShape asking(unsigned devices, uint32_t share, uint32_t cpu = 1000, Models models = any_model) {
  RequestShape a;
  a.devices = static_cast<uint8_t>(devices);
  a.share = {share};
  a.cpu_milli = cpu;
  a.models = models;
  return a;
}

void add(Fleet& fleet, std::string_view model, unsigned count, unsigned devices) {
  for (unsigned i = 0; i < count; ++i) {
    NodeState node;
    node.model = static_cast<uint8_t>(*fleet.model(model));
    node.cpu_free = 96'000;
    DeviceState device;
    device.usable = device.free = 16_GiB;
    fleet.add(node, std::vector<DeviceState>(devices, device));
  }
}

unsigned kept_nodes(const Fleet& fleet, const Guards& guards) {
  unsigned kept = 0;
  for (uint32_t n = 0; n < fleet.nodes(); ++n) kept += guards.kept(n) != 0;
  return kept;
}

// 40 nodes with 8 devices. Half of the demand is for 8 devices, so 20 nodes are the fair share, plus 1.5 *
// sqrt(20) = 6.7.
TEST(Guards, keep_the_fair_number_of_nodes_plus_some_deviations_minus_placed_requests) {
  Fleet fleet;
  add(fleet, "A", 40, 8);
  const RequestShape large = asking(8, 10000, 64'000);
  Guards guards;
  guards.set_workload_model(fleet, {{large, certain / 9}, {asking(1, 10000), certain / 9 * 8}});
  guards.settle(fleet);
  EXPECT_EQ(kept_nodes(fleet, guards), 27u);
  for (uint32_t n = 0; n < 27; ++n) guards.add_placed(fleet, large, n);
  guards.settle(fleet);
  EXPECT_EQ(kept_nodes(fleet, guards), 0u);
  guards.remove_placed(fleet, large, 7);
  guards.remove_placed(fleet, large, 8);
  guards.settle(fleet);
  EXPECT_EQ(kept_nodes(fleet, guards), 2u);
  EXPECT_EQ(guards.kept(7) | guards.kept(8) | guards.kept(30), 1u);
  EXPECT_EQ(guards.kept(6), 0u) << "this node has a large request";
}

RequestShape asking_memory(unsigned devices, Bytes memory, uint32_t cpu = 1000, Models models = any_model) {
  RequestShape a = asking(devices, 0, cpu, models);
  a.memory = memory;
  return a;
}

TEST(Guards, let_requests_for_memory_only_fill_the_fleet) {
  Engine engine(Strategy::fgd_scarcity);
  add(engine.fleet(), "A", 4, 2);
  const RequestShape two = asking_memory(2, 4_GiB);
  engine.set_workload_model({{two, certain}});
  const RequestClass request_class = engine.request_class(two);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(engine.place(request_class)) << i;
  EXPECT_FALSE(engine.place(request_class)) << "all memory of the eight devices is used";
}

// The counts are those of the first test, with memory as the only resource.
TEST(Guards, keep_nodes_for_large_requests_for_memory_only) {
  Fleet fleet;
  add(fleet, "A", 40, 8);
  Guards guards;
  guards.set_workload_model(
      fleet, {{asking_memory(8, 16_GiB), certain / 9}, {asking_memory(1, 16_GiB), certain / 9 * 8}});
  guards.settle(fleet);
  EXPECT_EQ(kept_nodes(fleet, guards), 27u);
}

// Each small request takes a tenth of a device's compute and half of its memory: 80 of them fill the memory
// of the 5 nodes. By compute, 400 would fit.
TEST(Guards, expect_as_many_requests_as_the_scarcer_resource_allows) {
  Fleet fleet;
  add(fleet, "A", 5, 8);
  RequestShape small = asking_memory(1, 8_GiB);
  small.share = {1000};
  const RequestShape large = asking(8, 1000);
  Guards guards;
  guards.set_workload_model(fleet, {{large, certain / 81}, {small, certain / 81 * 80}});
  guards.settle(fleet);
  EXPECT_EQ(kept_nodes(fleet, guards), 3u)
      << "the fair share is 1, plus 1.5 deviations of 1; by compute it would be all 5 nodes";
}

TEST(Guards, keep_the_nodes_with_the_fewest_slices) {
  Fleet fleet;
  add(fleet, "A", 10, 8);
  const RequestShape part = asking(1, 1000);
  for (uint32_t n = 0; n < 10; ++n)
    for (uint32_t i = 0; i < (n + 5) % 10; ++i) fleet.take(part, {n, 1u << i % 8, {}});
  Guards guards;  // A tenth of the demand: the fair share is one node, and two more are kept.
  guards.set_workload_model(fleet, {{asking(8, 10000), certain / 73}, {asking(1, 10000), certain / 73 * 72}});
  guards.settle(fleet);
  for (uint32_t n = 0; n < 10; ++n)
    EXPECT_EQ(guards.kept(n) != 0, n == 5 || n == 6 || n == 7) << "node " << n;
  fleet.set_up(6, false);
  guards.changed(fleet, 6);
  guards.settle(fleet);
  EXPECT_EQ(guards.kept(6), 0u);
  EXPECT_NE(guards.kept(8), 0u);
}

TEST(Guards, open_a_kept_node_to_other_requests_if_nothing_else_is_left) {
  Engine engine(Strategy::fgd_scarcity);
  add(engine.fleet(), "A", 3, 8);
  engine.set_workload_model(
      {{asking(8, 10000, 80'000), certain / 13}, {asking(1, 10000), certain / 13 * 12}});
  const RequestClass one = engine.request_class(asking(1, 10000));
  const RequestClass eight = engine.request_class(asking(8, 10000, 80'000));
  for (int i = 0; i < 24; ++i) ASSERT_TRUE(engine.place(one)) << i;
  EXPECT_FALSE(engine.find(eight));
}

// A node of 96 cores has two slots of 40 cores. A request for 20 cores leaves only one.
TEST(Guards, count_the_cpu_of_a_slot) {
  Fleet fleet;
  add(fleet, "A", 1, 8);
  Guards guards;
  guards.set_workload_model(fleet, {{asking(4, 10000, 40'000), certain}});
  EXPECT_EQ(guards.destroyed(fleet, 0, asking(0, 0, 16'000), {}), 0u);
  EXPECT_EQ(guards.destroyed(fleet, 0, asking(0, 0, 20'000), {}), 1u);
  EXPECT_EQ(guards.destroyed(fleet, 0, asking(1, 1000, 1'000), {.set = 1}), 1u)
      << "the request takes devices of the slot";
}

// A fifth of the demand is bound to model T, which 2 of the 10 devices have. Both are reserved until that
// demand has arrived.
void the_bound_find_their_fair_share(RequestShape any) {
  for (const Strategy strategy : {Strategy::fgd_scarcity, Strategy::lookahead}) {
    Engine engine(strategy);
    add(engine.fleet(), "T", 2, 1);
    add(engine.fleet(), "G", 8, 1);
    const Models only_t = Models{1} << *engine.fleet().known_model("T");
    RequestShape bound = any;
    bound.models = only_t;
    engine.set_workload_model({{any, certain / 5 * 4}, {bound, certain / 5}});
    for (int i = 0; i < 8; ++i)
      EXPECT_GE(engine.place(engine.request_class(any))->node, 2u) << text(strategy);
    EXPECT_TRUE(engine.find(engine.request_class(bound)));
    ASSERT_TRUE(engine.find(engine.request_class(any))) << "the guard yields if nothing else is left";
  }
}

TEST(Guards, reserve_the_fair_share_of_requests_bound_to_a_model) {
  the_bound_find_their_fair_share(asking(1, 10000));
}

TEST(Guards, reserve_the_fair_share_of_bound_requests_for_memory_only) {
  the_bound_find_their_fair_share(asking_memory(1, 16_GiB));
}

TEST(Guards, reserve_the_fair_share_of_bound_requests_for_a_part_of_the_memory) {
  RequestShape part = asking(1, 0);
  part.part = whole_device;
  the_bound_find_their_fair_share(part);
}

}  // namespace
}  // namespace carve::place
