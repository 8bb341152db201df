// Replicas of one application are kept apart if the strategy spreads them, or otherwise if this does not
// change the score.
#include <gtest/gtest.h>

#include <random>

#include "place/engine.h"
#include "place/place.h"
#include "place/rules.h"

namespace carve::place {
namespace {

constexpr Strategy all[] = {Strategy::binpack,  Strategy::spread, Strategy::first_fit,
                            Strategy::best_fit, Strategy::fgd,    Strategy::fgd_scarcity,
                            Strategy::lookahead};

RequestShape part(uint32_t share, unsigned devices = 1) {
  RequestShape a;
  a.isolated = false;
  a.share = {share};
  a.devices = static_cast<uint8_t>(devices);
  return a;
}

void add(Fleet& fleet, unsigned devices, uint32_t free_of_each = 10'000) {
  NodeState node;
  node.model = static_cast<uint8_t>(*fleet.model("A100"));
  node.cpu_free = 64'000;
  DeviceState device;
  device.usable = device.free = 80_GiB;
  device.free_share = {free_of_each};
  fleet.add(node, std::vector<DeviceState>(devices, device));
}

struct Where {
  uint32_t node;
  DeviceSet devices;
  friend bool operator==(const Where&, const Where&) = default;
};
Where where(const std::optional<Assignment>& s) {
  return s ? Where{s->node, s->devices} : Where{UINT32_MAX, 0};
}

TEST(Replicas, are_spread_over_nodes_before_fullness_is_compared) {
  Engine engine(Strategy::spread);
  add(engine.fleet(), 8);
  add(engine.fleet(), 2, 3'000);
  add(engine.fleet(), 2, 5'000);
  const RequestClass request_class = engine.request_class(part(1'000));
  const Application web = engine.application("web");
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{0, 0b1}));
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{2, 0b1}));
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{1, 0b1}));
  EXPECT_EQ(where(engine.place(request_class, web)),
            (Where{0, 0b10}));  // The second round; never twice on one device.
  // A request that belongs to no application ignores replicas.
  EXPECT_EQ(where(engine.place(request_class)), (Where{0, 0b100}));
}

TEST(Replicas, are_spread_over_the_devices_of_one_node) {
  Engine engine(Strategy::spread);
  add(engine.fleet(), 2);
  engine.take(engine.request_class(part(6'000)), {0, 0b10, {}});
  const RequestClass request_class = engine.request_class(part(2'000));
  const Application web = engine.application("web");
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{0, 0b01}));
  EXPECT_EQ(where(engine.find(request_class)), (Where{0, 0b01}));
  const auto second = engine.place(request_class, web);
  EXPECT_EQ(where(second), (Where{0, 0b10}));
  // Each device has one replica, so the emptier device is next.
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{0, 0b01}));
  engine.release(request_class, *second, web);
  EXPECT_EQ(where(engine.place(request_class, web)), (Where{0, 0b10}));
}

TEST(Replicas, are_kept_apart_by_other_strategies_if_scores_are_equal) {
  for (const Strategy strategy : {Strategy::first_fit, Strategy::best_fit, Strategy::fgd}) {
    Engine engine(strategy);
    for (int n = 0; n < 3; ++n) add(engine.fleet(), 2);
    engine.set_workload_model({{part(5'000), certain}});
    const RequestClass request_class = engine.request_class(part(10'000));
    const Application web = engine.application("web");
    const auto first = where(engine.place(request_class, web));
    EXPECT_EQ(first.node, 0u) << text(strategy);
    // best-fit prefers the fuller node, with or without replicas.
    const bool node_alike = strategy != Strategy::best_fit;
    EXPECT_EQ(where(engine.find(request_class, web)).node, node_alike ? 1u : 0u) << text(strategy);
    EXPECT_EQ(where(engine.find(request_class)).node, 0u) << text(strategy);
  }
}

// In any history, an application never changes whether a request fits. Spread chooses the node with the
// fewest replicas, and the other strategies lose nothing of their score.
TEST(Replicas, never_change_whether_a_request_fits) {
  for (const Strategy strategy : all) {
    std::mt19937 dice(11);
    Engine engine(strategy);
    for (int n = 0; n < 70; ++n) add(engine.fleet(), n % 3 == 0 ? 2 : 4);
    engine.set_workload_model({{part(5'000), certain / 2}, {part(10'000, 2), certain / 2}});
    struct PlacedRequest {
      RequestClass request_class;
      Assignment assignment;
      unsigned application;
    };
    std::vector<PlacedRequest> standing;
    for (int round = 0; round < 600; ++round) {
      if (dice() % 3 == 0 && !standing.empty()) {
        std::swap(standing[dice() % standing.size()], standing.back());
        const PlacedRequest& s = standing.back();
        engine.release(s.request_class, s.assignment, s.application);
        standing.pop_back();
        continue;
      }
      const RequestClass request_class =
          engine.request_class(part(dice() % 4 * 2'000 + 1'000, dice() % 8 == 0 ? 2 : 1));
      const Application app = engine.application("app" + std::to_string(dice() % 3));
      const auto plain = engine.find(request_class);
      const auto assignment = engine.place(request_class, app);
      ASSERT_EQ(assignment.has_value(), plain.has_value());
      if (!assignment) continue;
      if (strategy == Strategy::spread) {
        std::vector<unsigned> count(engine.fleet().nodes());
        for (const PlacedRequest& s : standing) count[s.assignment.node] += s.application == app;
        engine.release(request_class, *assignment, app);
        for (uint32_t n = 0; n < engine.fleet().nodes(); ++n)
          if (fitting(engine.fleet(), n, engine.shape(request_class))) {
            ASSERT_LE(count[assignment->node], count[n]);
          }
        engine.take(request_class, *assignment, app);
      }
      standing.push_back({request_class, *assignment, app});
    }
    // After all slices have ended, no replica is recorded any longer.
    for (const PlacedRequest& s : standing) engine.release(s.request_class, s.assignment, s.application);
    const RequestClass request_class = engine.request_class(part(1'000));
    EXPECT_EQ(where(engine.find(request_class, engine.application("app1"))),
              where(engine.find(request_class)));
  }
}

TEST(Replicas, are_placed_on_different_devices_of_one_node_by_spread) {
  std::vector<DeviceSnapshot> devices(2);
  for (unsigned i = 0; i < 2; ++i) {
    devices[i].device.index = i;
    devices[i].device.uuid.bytes[0] = static_cast<uint8_t>(i + 1);
    devices[i].device.native = {10_GiB};
    devices[i].free = i == 0 ? 9_GiB : 4_GiB;
  }
  Request request;
  request.memory = PerDevice{1_GiB};
  request.application = "web";
  PlacedSlice first;
  first.parts = {{0, 1_GiB, {}}};
  EXPECT_EQ(place(devices, request, Strategy::spread, std::span(&first, 1)).placement->parts[0].device, 0u);
  first.application = "web";
  EXPECT_EQ(place(devices, request, Strategy::spread, std::span(&first, 1)).placement->parts[0].device, 1u);
}

}  // namespace
}  // namespace carve::place
