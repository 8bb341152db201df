// Requests whose parts differ are placed by the same engine, rules and strategies as requests with equal
// parts.
#include <gmock/gmock.h>

#include <random>

#include "place/consolidation.h"
#include "place/explain.h"
#include "place/place.h"
#include "place/rules.h"

namespace carve::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Strategy strategies[] = {Strategy::binpack,  Strategy::spread, Strategy::first_fit,
                                   Strategy::best_fit, Strategy::fgd,    Strategy::fgd_scarcity,
                                   Strategy::lookahead};

DeviceSnapshot free_device(unsigned index, Bytes free, Share share = whole_device, Bytes usable = 24_GiB) {
  DeviceSnapshot d;
  d.device.index = index;
  d.device.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.device.native = usable;
  d.free = free;
  d.free_share = share;
  return d;
}

Request of_parts(std::vector<PartRequest> parts) {
  Request r;
  r.devices = static_cast<unsigned>(parts.size());
  r.parts = std::move(parts);
  const auto valid = validated(r);
  EXPECT_TRUE(valid) << valid.error().message;
  return *valid;
}

TEST(Parts, are_placed_largest_first_on_the_device_with_the_least_free) {
  const std::vector<DeviceSnapshot> devices = {free_device(0, 24_GiB), free_device(1, 9_GiB),
                                               free_device(2, 10_GiB)};
  // Results are in the order of the request: its first part is the program's first device.
  const Answer answer =
      place(devices, of_parts({{PerDevice{4_GiB}, {1000}}, {PerDevice{8_GiB}, {3000}}}), Strategy::binpack);
  ASSERT_TRUE(answer.placement) << answer.summary;
  EXPECT_THAT(answer.placement->parts,
              ElementsAre(PlacementPart{2, 4_GiB, {1000}}, PlacementPart{1, 8_GiB, {3000}}));
  EXPECT_EQ(answer.verdicts[2].message, "part 1 (4 GiB, 10%): fits; 6 GiB would stay free");
  EXPECT_EQ(answer.verdicts[1].message, "part 2 (8 GiB, 30%): fits; 1 GiB would stay free");
}

TEST(Parts, leave_a_device_for_each_other_part) {
  // The larger part fits on both devices, and its best fit is the only device for the smaller part.
  const std::vector<DeviceSnapshot> devices = {free_device(0, 9_GiB, whole_device),
                                               free_device(1, 24_GiB, {1000})};
  for (const Strategy strategy : strategies) {
    const Answer answer =
        place(devices, of_parts({{PerDevice{8_GiB}, {500}}, {PerDevice{4_GiB}, {9000}}}), strategy);
    ASSERT_TRUE(answer.placement) << text(strategy);
    EXPECT_THAT(answer.placement->devices(), ElementsAre(1, 0)) << text(strategy);
  }
}

TEST(Parts, can_be_percentages_of_devices_of_different_sizes) {
  const std::vector<DeviceSnapshot> devices = {free_device(0, 24_GiB, whole_device, 24_GiB),
                                               free_device(1, 16_GiB, whole_device, 16_GiB)};
  const Answer answer =
      place(devices, of_parts({{OfUsable{{9000}}, {}}, {PerDevice{20_GiB}, {}}}), Strategy::binpack);
  ASSERT_TRUE(answer.placement) << answer.summary;
  EXPECT_THAT(answer.placement->parts,
              ElementsAre(PlacementPart{1, Bytes{14745_MiB}, {}}, PlacementPart{0, 20_GiB, {}}));
}

TEST(Parts, are_rejected_with_the_devices_of_each_part_if_they_do_not_all_fit) {
  const auto two = of_parts({{PerDevice{8_GiB}, {3000}}, {PerDevice{4_GiB}, {1000}}});
  const std::vector<DeviceSnapshot> one_free = {free_device(0, 9_GiB), free_device(1, 2_GiB)};
  const struct {
    std::vector<DeviceSnapshot> devices;
    const char* summary;
  } rows[] = {
      {one_free,
       "2 parts need a device each; part 1 (8 GiB, 30%) fits on device 0 only; part 2 (4 GiB, 10%) fits on "
       "device 0 only"},
      {{free_device(0, 6_GiB), free_device(1, 6_GiB)},
       "part 1 (8 GiB, 30%) fits on no device: devices 0, 1: 8 GiB needed, 6 GiB free; part 2 (4 GiB, 10%) "
       "fits "
       "on devices 0, 1"},
      {{free_device(0, 24_GiB)}, "2 parts need a device each, but the node has 1"},
  };
  for (const auto& row : rows) {
    const Answer answer = place(row.devices, two, Strategy::binpack);
    EXPECT_FALSE(answer.placement);
    EXPECT_THAT(answer.summary, HasSubstr(row.summary));
  }
  const Answer answer = place(one_free, two, Strategy::binpack);
  EXPECT_TRUE(answer.verdicts[0].fits);
  EXPECT_THAT(answer.verdicts[0].message, HasSubstr("part 1 (8 GiB, 30%): fits; 1 GiB would stay free"));
  EXPECT_FALSE(answer.verdicts[1].fits);
  EXPECT_THAT(answer.verdicts[1].message, HasSubstr("part 2 (4 GiB, 10%): 4 GiB needed, 2 GiB free"));
}

TEST(Parts, fit_after_a_move_that_the_rejection_proposes) {
  std::vector<DeviceSnapshot> devices = {free_device(0, 9_GiB), free_device(1, 4_GiB), free_device(2, 2_GiB)};
  devices[1].slices = devices[1].isolated = 1;
  std::vector<PlacedSlice> placed(1);
  placed[0].name = "a";
  placed[0].parts = {{1, 6_GiB, {}}};
  const Answer answer =
      place(devices, of_parts({{PerDevice{8_GiB}, {}}, {PerDevice{9_GiB}, {}}}), Strategy::binpack, placed);
  EXPECT_FALSE(answer.placement);
  EXPECT_THAT(answer.summary, testing::Not(HasSubstr("moving")));
  const Answer other =
      place(devices, of_parts({{PerDevice{2_GiB}, {}}, {PerDevice{10_GiB}, {}}}), Strategy::binpack, placed);
  EXPECT_THAT(other.summary, HasSubstr("moving 'a' (6 GiB) from device 1 to device 0 would make room"));
}

TEST(Parts, of_a_placed_slice_can_be_moved) {
  std::vector<DeviceSnapshot> devices = {free_device(0, 4_GiB), free_device(1, 20_GiB),
                                         free_device(2, 14_GiB)};
  for (DeviceSnapshot& device : devices) device.slices = device.isolated = 1;
  std::vector<PlacedSlice> placed(2);
  placed[0].name = "a";
  placed[0].parts = {{1, 4_GiB, {}}, {0, 8_GiB, {}}};
  placed[1].name = "b";
  placed[1].parts = {{2, 10_GiB, {}}};
  const Plan plan = place::plan(devices, Strategy::binpack, placed, 1);
  ASSERT_EQ(plan.emptied, std::vector<size_t>{1}) << "this device is the cheapest to empty";
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].who, 0u);
  EXPECT_EQ(plan.moves[0].from, 1u);
  EXPECT_EQ(plan.moves[0].to, 2u);
  EXPECT_EQ(plan.moved, 4_GiB) << "the other part is not moved";
}

// Returns whether the parts from `i` on can have different devices, by trying all combinations.
bool fits_somehow(const std::vector<DeviceSnapshot>& devices, const Request& r, size_t i, unsigned used) {
  if (i == r.parts.size()) return true;
  for (unsigned d = 0; d < devices.size(); ++d)
    if ((used >> d & 1) == 0 && devices[d].trouble.empty() &&
        need(r, i, devices[d].device) <= devices[d].free && r.parts[i].share <= devices[d].free_share &&
        fits_somehow(devices, r, i + 1, used | 1u << d))
      return true;
  return false;
}

TEST(Parts, are_placed_completely_if_there_is_any_way_and_otherwise_not_at_all) {
  std::mt19937 random(7);
  const auto dice = [&] { return static_cast<uint32_t>(random()); };
  unsigned placed = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<DeviceSnapshot> devices;
    const unsigned count = dice() % 6 + 1;
    for (unsigned i = 0; i < count; ++i) {
      devices.push_back(free_device(i, Bytes{uint64_t{dice() % 25} << 30}, {dice() % 11 * 1000}));
      if (dice() % 8 == 0) devices.back().trouble = "lost";
    }
    std::vector<PartRequest> parts(dice() % 4 + 1);
    for (PartRequest& part : parts) {
      part.share = {dice() % 7 * 1000 + 500};
      if (dice() % 4 == 0)
        part.memory = OfUsable{{dice() % 10 * 1000 + 500}};
      else
        part.memory = PerDevice{{uint64_t{dice() % 16 + 1} << 30}};
    }
    const Request request = of_parts(parts);
    std::vector<Wire> wires;
    for (unsigned a = 0; a + 1 < count; a += 2) wires.push_back({a, a + 1, Link::nvlink});
    const Topology links = *Topology::of(count, wires);
    const Strategy strategy = strategies[dice() % std::size(strategies)];
    const Answer answer = place(devices, request, strategy, {}, dice() % 2 == 0 ? &links : nullptr);
    ASSERT_EQ(answer.placement.has_value(), fits_somehow(devices, request, 0, 0)) << answer.summary;
    answer.placement ? ++placed : ++refused;
    if (!answer.placement) {
      EXPECT_FALSE(answer.summary.empty());
      continue;
    }
    ASSERT_EQ(answer.placement->parts.size(), parts.size());
    unsigned used = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const PlacementPart& part = answer.placement->parts[i];
      ASSERT_EQ(used >> part.device & 1, 0u) << "distinct devices";
      used |= 1u << part.device;
      ASSERT_EQ(part.memory, need(request, i, devices[part.device].device));
      ASSERT_EQ(part.share, parts[i].share);
      ASSERT_LE(part.memory, devices[part.device].free);
      ASSERT_LE(part.share, devices[part.device].free_share);
    }
  }
  EXPECT_GT(placed, 500u);
  EXPECT_GT(refused, 500u);
}

TEST(Parts, are_taken_and_released_together_on_a_fleet) {
  for (const Strategy strategy : strategies) {
    std::mt19937 random(5);
    const auto dice = [&] { return static_cast<uint32_t>(random()); };
    Engine engine(strategy);
    const auto model = static_cast<uint8_t>(*engine.fleet().model("A10"));
    for (int n = 0; n < 9; ++n) {
      NodeState node;
      node.model = model;
      node.cpu_free = 64'000;
      node.host_free = 256_GiB;
      DeviceState device;
      device.usable = device.free = 24_GiB;
      engine.fleet().add(node, std::vector<DeviceState>(4, device));
    }
    const uint64_t all = engine.fleet().free_share();
    std::vector<PlacedRequest> standing;
    for (int round = 0; round < 400; ++round) {
      if (dice() % 3 == 0 && !standing.empty()) {
        std::swap(standing[dice() % standing.size()], standing.back());
        engine.release(standing.back().request_class, standing.back().assignment);
        standing.pop_back();
        continue;
      }
      RequestShape shape;
      shape.devices = static_cast<uint8_t>(dice() % 3 + 1);
      for (unsigned i = 0; shape.devices > 1 && i < shape.devices; ++i)
        shape.parts.push_back(
            {.memory = {uint64_t{dice() % 8 + 1 + i} << 30}, .share = {dice() % 4 * 1000 + 500}});
      if (shape.devices == 1) shape.memory = {uint64_t{dice() % 8 + 1} << 30}, shape.share = {1000};
      const RequestClass k = engine.request_class(shape);
      const auto fits = [&](uint32_t n) { return fitting(engine.fleet(), n, shape).has_value(); };
      bool somewhere = false;
      for (uint32_t n = 0; n < engine.fleet().nodes(); ++n) somewhere |= fits(n);
      const auto found = engine.place(k);
      ASSERT_EQ(found.has_value(), somewhere) << text(strategy);
      if (!found) {
        EXPECT_FALSE(explain(engine.fleet(), shape).counts.empty());
        continue;
      }
      ASSERT_EQ(found->places().size(), shape.devices);
      standing.push_back({k, *found, no_application});
    }
    const uint64_t before = engine.fleet().free_share();
    const ConsolidationPlan plan = plan_consolidation(engine, standing, 3);
    for (const Move& m : plan.moves) EXPECT_FALSE(exchanged(m).empty());
    EXPECT_EQ(engine.fleet().free_share(), before);
    for (const PlacedRequest& s : standing) engine.release(s.request_class, s.assignment);
    EXPECT_EQ(engine.fleet().free_share(), all);
    EXPECT_EQ(engine.fleet().free_of_model(model), Bytes{9 * 4 * Bytes{24_GiB}.count});
  }
}

TEST(Parts, that_need_the_same_device_are_counted_under_their_own_rule) {
  Fleet fleet;
  NodeState node;
  node.model = static_cast<uint8_t>(*fleet.model("A10"));
  DeviceState large, small;
  large.usable = large.free = 24_GiB;
  small.usable = small.free = 2_GiB;
  fleet.add(node, std::vector{large, small});
  RequestShape shape;
  shape.devices = 2;
  shape.parts = {{.memory = 8_GiB}, {.memory = 4_GiB}};
  EXPECT_FALSE(fitting(fleet, 0, shape));
  EXPECT_EQ(broken_rule(fleet, 0, shape), "a device for each part");
  EXPECT_EQ(explain(fleet, shape).message, "0/1 nodes can serve: 1 a device for each part");
  shape.parts[1].memory = 1_GiB;
  EXPECT_TRUE(fitting(fleet, 0, shape));
  shape.parts[0].memory = 25_GiB;
  EXPECT_EQ(broken_rule(fleet, 0, shape), "too small");
}

}  // namespace
}  // namespace carve::place
