#include "place/explain.h"

#include <gmock/gmock.h>

#include <random>

#include "place/migration.h"

namespace carve::place {
namespace {

using testing::HasSubstr;

void add(Fleet& fleet, const char* model, std::vector<DeviceState> devices, uint32_t cpu = 64'000) {
  NodeState node;
  node.model = static_cast<uint8_t>(*fleet.model(model));
  node.cpu_free = cpu;
  node.host_free = 256_GiB;
  fleet.add(node, devices);
}

DeviceState device(Bytes free, uint32_t share = 10000) {
  DeviceState c;
  c.usable = 48_GiB;
  c.free = free;
  c.free_share = {share};
  return c;
}

RequestShape asking(Bytes memory, uint32_t share = 0, unsigned devices = 1) {
  RequestShape a;
  a.memory = memory;
  a.share = {share};
  a.devices = static_cast<uint8_t>(devices);
  return a;
}

TEST(Explain, counts_each_node_once_and_reports_the_closest_fit) {
  Fleet fleet;
  for (int i = 0; i < 8; ++i) add(fleet, "T4", {device(48_GiB)});
  for (int i = 0; i < 3; ++i) add(fleet, "A10", {device(6_GiB), device(2_GiB)});
  add(fleet, "A10", {device(48_GiB)}, 500);
  RequestShape shape = asking(8_GiB);
  shape.models = 0b10;
  shape.cpu_milli = 1000;
  const Refusal refusal = explain(fleet, shape);
  EXPECT_EQ(
      refusal.message,
      "0/12 nodes can serve: 8 other model, 3 memory, 1 cpu; the largest free block is 6 GiB: the request "
      "fits with 2 GiB less; the request fits with at most 500m of CPU");
}

TEST(Explain, considers_memory_and_compute_of_the_same_device) {
  Fleet fleet;
  add(fleet, "A10", {device(48_GiB, 500)});
  const Refusal refusal = explain(fleet, asking(20_GiB, 1000));
  EXPECT_THAT(refusal.message, HasSubstr("1 compute"));
  EXPECT_THAT(refusal.message, HasSubstr("the request fits with at most 5% of the compute"));
  ASSERT_EQ(refusal.nearest.size(), 1u);
  EXPECT_EQ(refusal.nearest[0].share, Share{500});
}

TEST(Explain, reports_the_largest_block_on_a_device_with_enough_compute) {
  Fleet fleet;
  add(fleet, "A10", {device(14_GiB, 500), device(4_GiB, 8000)});
  EXPECT_THAT(
      explain(fleet, asking(16_GiB, 1000)).message,
      HasSubstr(
          "the largest free block with enough free compute is 4 GiB: the request fits with 12 GiB less"));
}

TEST(Explain, counts_the_limit_of_slices_and_reports_unequal_devices) {
  Fleet fleet;
  DeviceState full = device(40_GiB);
  full.slices = full.isolated = 16;
  add(fleet, "A10", {full});
  EXPECT_THAT(explain(fleet, asking(128_MiB)).message, HasSubstr("1 16 slices on every device"));
  Fleet pair;
  add(pair, "A10", {device(20_GiB), device(5_GiB)});
  EXPECT_THAT(explain(pair, asking(8_GiB, 0, 2)).message,
              HasSubstr("largest free block is 5 GiB: the request fits with 3 GiB less on each device"));
}

TEST(Explain, counts_a_percentage_of_unequal_devices_under_its_own_rule) {
  Fleet fleet;
  DeviceState smaller = device(5_GiB);
  smaller.usable = 5_GiB;
  add(fleet, "A10", {device(48_GiB), smaller});
  RequestShape shape = asking({}, 0, 2);
  shape.part = {8000};
  EXPECT_THAT(explain(fleet, shape).message, HasSubstr("1 devices of different sizes"));
}

TEST(Explain, reports_a_smaller_request_that_fits) {
  std::mt19937 dice(5);
  int said = 0;
  for (int round = 0; round < 500; ++round) {
    Fleet fleet;
    for (unsigned n = dice() % 5 + 1; n > 0; --n) {
      std::vector<DeviceState> devices;
      for (unsigned i = dice() % 4 + 1; i > 0; --i) {
        devices.push_back(device(Bytes{uint64_t{dice() % 49} << 30}, dice() % 11 * 1000));
        devices.back().context = 300_MiB;
        devices.back().isolated = static_cast<uint8_t>(dice() % 17);
      }
      add(fleet, dice() % 2 ? "A10" : "T4", devices, dice() % 8 * 1000);
    }
    RequestShape shape =
        asking(Bytes{(uint64_t{dice() % 48} << 30) + (1 << 20)}, dice() % 11 * 1000, dice() % 3 + 1);
    shape.cpu_milli = dice() % 8 * 1000;
    const Refusal refusal = explain(fleet, shape);
    for (const auto& nearest : refusal.nearest) {
      RequestShape less = shape;
      if (nearest.memory) less.memory = *nearest.memory;
      if (nearest.share) less.share = *nearest.share;
      if (nearest.cpu) less.cpu_milli = *nearest.cpu;
      EXPECT_NE(explain(fleet, less).serving, 0u) << refusal.message;
      ++said;
    }
  }
  EXPECT_GT(said, 100);
}

TEST(Migration, proposes_the_cheapest_single_move_and_changes_nothing) {
  std::mt19937 dice(9);
  int repaired = 0;
  for (int round = 0; round < 200; ++round) {
    Engine engine(Strategy::spread);
    for (int n = 0; n < 4; ++n) add(engine.fleet(), "A10", {device(48_GiB), device(48_GiB)});
    std::vector<PlacedRequest> standing;
    const Application web = engine.application("web");
    for (int i = 0; i < 16; ++i) {
      const RequestClass request_class =
          engine.request_class(asking(Bytes{uint64_t{dice() % 16 + 4} << 30}, 1000));
      const Application app = dice() % 2 == 0 ? web : no_application;
      if (const auto assignment = engine.place(request_class, app))
        standing.push_back({request_class, *assignment, app});
    }
    const RequestClass wanted = engine.request_class(asking(Bytes{uint64_t{dice() % 24 + 16} << 30}, 2000));
    const auto repair = propose_migration(engine, wanted, standing, web);
    if (!repair) continue;
    ASSERT_FALSE(engine.find(wanted, web)) << "the engine is unchanged";
    const PlacedRequest& who = standing[repair->who];
    engine.release(who.request_class, who.assignment, who.application);
    EXPECT_EQ(engine.find(wanted, web), repair->room);
    engine.take(wanted, repair->room, web);
    EXPECT_EQ(engine.find(who.request_class, who.application), repair->to);
    ++repaired;
  }
  EXPECT_GT(repaired, 20);
}

// The emptiest node has the other replica, so the replica that makes room goes to the third node.
TEST(Migration, keeps_replicas_apart) {
  Engine engine(Strategy::spread);
  for (const char* model : {"A10", "T4", "A10"}) add(engine.fleet(), model, {device(16_GiB)});
  const RequestClass first = engine.request_class(asking(2_GiB, 1000));
  const RequestClass second = engine.request_class(asking(6_GiB, 1000));
  const RequestClass other = engine.request_class(asking(4_GiB, 1000));
  RequestShape large = asking(12_GiB, 1000);
  large.models = Models{1} << *engine.fleet().known_model("T4");
  for (const char* name : {"web", ""}) {
    const Application app = engine.application(name);
    const std::vector<PlacedRequest> standing = {
        {first, {0, 1, 2_GiB}, app}, {second, {1, 1, 6_GiB}, app}, {other, {2, 1, 4_GiB}}};
    for (const PlacedRequest& s : standing) engine.take(s.request_class, s.assignment, s.application);
    const auto repair = propose_migration(engine, engine.request_class(large), standing);
    ASSERT_TRUE(repair);
    EXPECT_EQ(repair->who, 1u);
    EXPECT_EQ(repair->to.node, app == no_application ? 0u : 2u);
    for (const PlacedRequest& s : standing) engine.release(s.request_class, s.assignment, s.application);
  }
}

}  // namespace
}  // namespace carve::place
