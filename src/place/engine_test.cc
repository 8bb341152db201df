#include "place/engine.h"

#include <gtest/gtest.h>

#include <random>

#include "place/explain.h"
#include "place/rules.h"

namespace carve::place {
namespace {

constexpr Strategy all[] = {Strategy::binpack,  Strategy::spread, Strategy::first_fit,
                            Strategy::best_fit, Strategy::fgd,    Strategy::fgd_scarcity,
                            Strategy::lookahead};

RequestShape asking(unsigned devices, uint32_t share, Bytes memory = {}, Models models = any_model) {
  RequestShape a;
  a.devices = static_cast<uint8_t>(devices);
  a.share = {share};
  a.memory = memory;
  a.models = models;
  a.cpu_milli = 1000;
  return a;
}

void add(Fleet& fleet, unsigned model, unsigned devices, Bytes each = 16_GiB, uint32_t cpu = 64'000) {
  NodeState node;
  node.model = static_cast<uint8_t>(*fleet.model("model" + std::to_string(model)));
  node.cpu_free = cpu;
  node.host_free = 256_GiB;
  DeviceState device;
  device.usable = device.free = each;
  fleet.add(node, std::vector<DeviceState>(devices, device));
}

// A dozen request classes for a mixed cluster of three models.
WorkloadModel mixture() {
  WorkloadModel w;
  for (const auto& [shape, parts] :
       std::vector<std::pair<RequestShape, int64_t>>{{asking(1, 10000, 8_GiB), 300},
                                                     {asking(1, 5000, 4_GiB), 200},
                                                     {asking(1, 2500, 12_GiB), 150},
                                                     {asking(1, 4600, 2_GiB, 0b001), 100},
                                                     {asking(1, 1000, 1_GiB), 100},
                                                     {asking(2, 10000, 16_GiB), 60},
                                                     {asking(2, 3000, 3_GiB), 40},
                                                     {asking(8, 10000, 16_GiB, 0b110), 20},
                                                     {asking(0, 0), 30}})
    w.push_back({shape, certain / 1000 * parts});
  return w;
}

void add_mixed(Fleet& fleet, std::mt19937& dice, unsigned nodes) {
  for (unsigned i = 0; i < nodes; ++i) {
    const unsigned model = dice() % 3;
    add(fleet, model, model == 0 ? 2 : 8, model == 1 ? 32_GiB : 16_GiB, 32'000 + dice() % 3 * 32'000);
  }
}

// A caller that keeps the devices' states itself gets the same results as from an engine that keeps them.
TEST(Engine, decides_the_same_if_the_caller_keeps_the_devices_states) {
  for (const Strategy strategy : all) {
    std::mt19937 dice(7);
    Engine keeps(strategy), told(strategy);
    add_mixed(keeps.fleet(), dice, 40);
    dice.seed(7);
    add_mixed(told.fleet(), dice, 40);
    const WorkloadModel workload = mixture();
    keeps.set_workload_model(workload), told.set_workload_model(workload);
    std::vector<std::pair<RequestClass, Assignment>> placed;
    const auto copy_states = [&](uint32_t n) {
      for (unsigned i = 0; i < keeps.fleet().node(n).devices; ++i)
        told.fleet().set_device(n, i, keeps.fleet().devices(n)[i]);
      told.fleet().set_host(n, keeps.fleet().node(n).cpu_free, keeps.fleet().node(n).host_free);
    };
    for (int step = 0; step < 600; ++step) {
      if (!placed.empty() && dice() % 3 == 0) {
        const size_t gone = dice() % placed.size();
        const auto [k, assignment] = placed[gone];
        placed[gone] = placed.back(), placed.pop_back();
        keeps.release(k, assignment);
        copy_states(assignment.node);
        told.remove_placed(k, assignment);
        continue;
      }
      const RequestShape& shape = workload[dice() % workload.size()].shape;
      const RequestClass k = keeps.request_class(shape);
      ASSERT_EQ(k, told.request_class(shape));
      const auto found = keeps.find(k);
      ASSERT_EQ(found, told.find(k)) << text(strategy) << " step " << step;
      if (!found) continue;
      EXPECT_EQ(found, told.find_on(k, found->node));
      EXPECT_NE(told.scores(k)[found->node], 0);
      keeps.take(k, *found);
      copy_states(found->node);
      told.add_placed(k, *found);
      placed.emplace_back(k, *found);
    }
  }
}

TEST(Engine, supports_nodes_whose_devices_have_different_models) {
  Engine engine(Strategy::binpack);
  const unsigned a10 = *engine.fleet().model("A10"), h100 = *engine.fleet().model("H100");
  NodeState node;
  node.model = static_cast<uint8_t>(a10);
  node.mixed = true;
  DeviceState device;
  device.usable = device.free = 16_GiB;
  std::vector<DeviceState> devices(3, device);
  for (unsigned i = 0; i < 3; ++i) devices[i].model = static_cast<uint8_t>(i == 1 ? h100 : a10);
  engine.fleet().add(node, devices);
  const auto on = [&](unsigned count, Models models) {
    RequestShape shape = asking(count, 0, 2_GiB, models);
    shape.cpu_milli = 0;
    const auto found = engine.find(engine.request_class(shape));
    return found ? found->devices : DeviceSet{0};
  };
  EXPECT_EQ(on(1, Models{1} << h100), 0b010u);
  EXPECT_EQ(on(2, Models{1} << a10), 0b101u);
  EXPECT_EQ(on(2, Models{1} << h100), 0u);
  EXPECT_EQ(on(3, any_model), 0b111u);
}

TEST(Engine, supports_nodes_without_devices) {
  Engine engine(Strategy::binpack);
  NodeState node;
  node.model = static_cast<uint8_t>(*engine.fleet().model("A10"));
  engine.fleet().add(node, {});
  EXPECT_TRUE(engine.fleet().devices(0).empty());
  EXPECT_FALSE(engine.find(engine.request_class(asking(1, 1000, 2_GiB, any_model))));
}

TEST(Engine, uses_only_the_kinds_of_nodes_that_the_request_names) {
  Engine engine(Strategy::binpack);
  for (uint8_t kind = 0; kind < 3; ++kind) {
    NodeState node;
    node.model = static_cast<uint8_t>(*engine.fleet().model("A10"));
    node.kind = kind;
    engine.fleet().add(node, std::vector<DeviceState>(1, {.usable = 4_GiB, .free = 4_GiB, .context = {}}));
  }
  RequestShape shape = asking(1, 0, 2_GiB);
  shape.cpu_milli = 0;
  shape.kinds = 0b100;
  EXPECT_EQ(engine.find(engine.request_class(shape))->node, 2u);
  EXPECT_EQ(broken_rule(engine.fleet(), 0, shape), "other mode");
  shape.kinds = 0b110;
  EXPECT_EQ(engine.find(engine.request_class(shape))->node, 1u);
}

TEST(Engine, can_use_another_strategy_for_a_decision_on_one_node) {
  Engine engine(Strategy::fgd);
  add(engine.fleet(), 0, 2);
  add(engine.fleet(), 0, 1, 1_GiB);
  const RequestClass k = engine.request_class(asking(1, 0, 2_GiB));
  engine.take(k, {0, 0b01, 2_GiB});
  EXPECT_EQ(engine.find_on(k, 0, no_application, Strategy::binpack)->devices, 0b01u);
  EXPECT_EQ(engine.find_on(k, 0, no_application, Strategy::spread)->devices, 0b10u);
  EXPECT_FALSE(engine.find_on(k, 1));
  EXPECT_EQ(engine.scores(k)[1], 0);
}

TEST(Engine, caches_scores_that_equal_newly_computed_ones) {
  for (const Strategy strategy : all) {
    std::mt19937 dice(7);
    Engine engine(strategy);
    add_mixed(engine.fleet(), dice, 90);
    const WorkloadModel workload = mixture();
    engine.set_workload_model(workload);
    std::vector<std::pair<RequestClass, Assignment>> standing;
    for (int round = 0; round < 1500; ++round) {
      const unsigned what = dice() % 16;
      if (what < 5 && !standing.empty()) {
        std::swap(standing[dice() % standing.size()], standing.back());
        engine.release(standing.back().first, standing.back().second);
        standing.pop_back();
        continue;
      }
      if (what == 15) {
        const uint32_t n = dice() % engine.fleet().nodes();
        engine.fleet().set_up(n, !engine.fleet().node(n).up);
        continue;
      }
      const RequestClass request_class = engine.request_class(workload[dice() % workload.size()].shape);
      const auto remembered = engine.find(request_class);
      if (round % 25 == 0) {
        engine.set_workload_model(workload);  // Invalidates all stored scores.
        ASSERT_EQ(engine.find(request_class), remembered) << text(strategy) << " in round " << round;
      }
      const auto placed = engine.place(request_class);
      ASSERT_EQ(placed, remembered);
      if (placed) standing.emplace_back(request_class, *placed);
    }
    EXPECT_GT(standing.size(), 100u) << text(strategy);
  }
}

TEST(Engine, never_takes_more_than_there_is_and_gets_all_of_it_back) {
  for (const Strategy strategy : all) {
    std::mt19937 dice(11);
    Engine engine(strategy);
    add_mixed(engine.fleet(), dice, 40);
    const WorkloadModel workload = mixture();
    engine.set_workload_model(workload);
    const uint64_t free_before = engine.fleet().free_share();
    std::vector<std::pair<RequestClass, Assignment>> standing;
    for (int i = 0; i < 2000; ++i) {
      const RequestClass request_class = engine.request_class(workload[dice() % workload.size()].shape);
      const auto assignment = engine.place(request_class);
      if (!assignment) continue;
      ASSERT_EQ(std::popcount(assignment->devices), engine.shape(request_class).devices);
      standing.emplace_back(request_class, *assignment);
    }
    for (uint32_t n = 0; n < engine.fleet().nodes(); ++n) {
      EXPECT_LE(engine.fleet().node(n).cpu_free, 96'000u);  // Unsigned, so a negative value would be huge.
      for (const DeviceState& c : engine.fleet().devices(n)) {
        EXPECT_LE(c.free, c.usable);
        EXPECT_LE(c.free_share, whole_device);
      }
    }
    for (const auto& [request_class, assignment] : standing) engine.release(request_class, assignment);
    EXPECT_EQ(engine.fleet().free_share(), free_before);
    for (uint32_t n = 0; n < engine.fleet().nodes(); ++n)
      for (const DeviceState& c : engine.fleet().devices(n)) EXPECT_EQ(c.free, c.usable);
  }
}

TEST(Engine, prefers_the_first_of_equal_nodes) {
  for (const Strategy strategy : all) {
    Engine engine(strategy);
    for (int i = 0; i < 200; ++i) add(engine.fleet(), 0, 4);
    engine.fleet().set_up(0, false);
    EXPECT_EQ(engine.find(engine.request_class(asking(1, 5000)))->node, 1u) << text(strategy);
  }
}

TEST(Engine, rescores_all_nodes_if_the_journal_overflowed) {
  Engine engine(Strategy::binpack);
  for (int i = 0; i < 3; ++i) add(engine.fleet(), 0, 1);
  const RequestClass half = engine.request_class(asking(1, 5000));
  const RequestClass whole = engine.request_class(asking(1, 10000));
  ASSERT_TRUE(engine.find(whole));
  for (int i = 0; i < 1000; ++i) engine.release(half, *engine.place(half));
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(engine.place(half));
  EXPECT_FALSE(engine.find(whole));
}

TEST(Engine, uses_a_node_that_was_added_between_two_requests) {
  Engine engine(Strategy::binpack);
  const RequestClass whole = engine.request_class(asking(1, 10000));
  // The journal is reallocated at 33, 65, 129 and 257 nodes, and the scores after every 64 nodes.
  for (uint32_t n = 0; n < 300; ++n) {
    add(engine.fleet(), 0, 1);
    const auto assignment = engine.place(whole);
    ASSERT_TRUE(assignment) << n << " nodes are full and one was added";
    EXPECT_EQ(assignment->node, n);
  }
}

TEST(EngineDeathTest, aborts_if_a_slice_is_released_twice) {
  Engine engine(Strategy::binpack);
  add(engine.fleet(), 0, 1);
  const RequestClass half = engine.request_class(asking(1, 5000));
  const Assignment assignment = *engine.place(half);
  engine.release(half, assignment);
  EXPECT_DEATH(engine.release(half, assignment), "fleet\\.cc:[0-9]+: .*a slice leaves a device once");
}

TEST(Engine, limits_its_memory_without_changing_results_for_many_request_classes) {
  for (const Strategy strategy : {Strategy::best_fit, Strategy::fgd_scarcity}) {
    std::mt19937 dice(5);
    Engine engine(strategy);
    std::mt19937 nodes(9);
    add_mixed(engine.fleet(), nodes, 192);
    engine.set_workload_model(mixture());
    std::vector<std::pair<RequestClass, Assignment>> standing;
    for (int round = 0; round < 4'000; ++round) {
      RequestShape shape = asking(1, 500 + dice() % 1'000);  // A thousand classes.
      shape.cpu_milli = 100;
      const RequestClass request_class = engine.request_class(shape);
      const auto assignment = engine.place(request_class);
      ASSERT_TRUE(assignment);
      standing.emplace_back(request_class, *assignment);
      if (standing.size() > 300) {
        std::swap(standing[dice() % standing.size()], standing.back());
        engine.release(standing.back().first, standing.back().second);
        standing.pop_back();
      }
      if (round % 400 != 0) continue;
      Engine fresh(strategy);
      std::mt19937 again(9);
      add_mixed(fresh.fleet(), again, 192);
      fresh.set_workload_model(mixture());
      for (const auto& [k, s] : standing) fresh.take(fresh.request_class(engine.shape(k)), s);
      EXPECT_EQ(engine.find(request_class), fresh.find(fresh.request_class(shape)));
    }
    EXPECT_GT(engine.classes(), 900u);
    EXPECT_LE(engine.bytes_per_node(), 1024u);  // Scores for a thousand classes would take 2,000 bytes.
  }
}

TEST(Engine, keeps_the_last_slots_for_expected_requests) {
  WorkloadModel workload;
  workload.push_back({asking(1, 5000), certain / 2});
  workload.push_back({asking(4, 10000), certain / 2});
  Engine engine(Strategy::fgd_scarcity);
  for (int i = 0; i < 2; ++i) add(engine.fleet(), 0, 4);
  engine.set_workload_model(workload);
  const RequestClass half = engine.request_class(asking(1, 5000));
  const auto first = engine.place(half);
  ASSERT_TRUE(first);
  const auto second = engine.place(half);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->node, second->node) << "one slot of four devices is kept";
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(engine.place(half)) << "guards yield before a request is refused";
  EXPECT_FALSE(engine.place(half));
}

TEST(Engine, keeps_the_capacity_of_a_model_for_requests_bound_to_it) {
  WorkloadModel workload;
  workload.push_back({asking(1, 10000, {}, 0b01), certain / 2});
  workload.push_back({asking(1, 10000), certain / 2});
  Engine engine(Strategy::fgd_scarcity);
  add(engine.fleet(), 0, 4);  // First in order, so requests without a preference would go here.
  add(engine.fleet(), 1, 4);
  engine.set_workload_model(workload);
  const RequestClass any = engine.request_class(asking(1, 10000));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(engine.place(any)->node, 1u);
  EXPECT_EQ(engine.place(any)->node, 0u) << "refusing the request would not help any other";
}

TEST(Rules, reject_by_their_name_and_only_for_their_cause) {
  struct Row {
    const char* name;
    void (*spoil)(NodeState&, DeviceState&, RequestShape&);
  };
  const Row rows[] = {
      {"down", [](NodeState& n, DeviceState&, RequestShape&) { n.up = false; }},
      {"other model", [](NodeState&, DeviceState&, RequestShape& a) { a.models = 0b10; }},
      {"other mode", [](NodeState& n, DeviceState&, RequestShape& a) { n.kind = 3, a.kinds = 0b0111; }},
      {"other policy",
       [](NodeState& n, DeviceState&, RequestShape& a) {
         n.policy = static_cast<uint8_t>(Policy::native_burst_share);
         a.policy = static_cast<uint8_t>(Policy::fixed_share);
       }},
      {"no isolation", [](NodeState& n, DeviceState&, RequestShape&) { n.isolates = false; }},
      {"too few devices", [](NodeState&, DeviceState&, RequestShape& a) { a.devices = 2; }},
      {"cpu", [](NodeState& n, DeviceState&, RequestShape&) { n.cpu_free = 999; }},
      {"host memory", [](NodeState&, DeviceState&, RequestShape& a) { a.host_memory = 257_GiB; }},
      {"other device", [](NodeState&, DeviceState&, RequestShape& a) { a.only = 7; }},
      {"device model",
       [](NodeState& n, DeviceState& c, RequestShape& a) { n.mixed = true, c.model = 1, a.models = 0b01; }},
      {"unhealthy", [](NodeState&, DeviceState& c, RequestShape&) { c.sick = true; }},
      {"MIG mode", [](NodeState&, DeviceState& c, RequestShape&) { c.partitioned = true; }},
      {"policy",
       [](NodeState&, DeviceState& c, RequestShape& a) {
         c.policy = static_cast<uint8_t>(Policy::fixed_share);
         a.policy = static_cast<uint8_t>(Policy::guaranteed_burst_share);
       }},
      {"no share", [](NodeState&, DeviceState& c, RequestShape& a) { c.shared_out = a.best_effort = true; }},
      {"too small", [](NodeState&, DeviceState&, RequestShape& a) { a.memory = 17_GiB; }},
      {"less than a context", [](NodeState&, DeviceState& c, RequestShape&) { c.context = 2_GiB; }},
      {"no migration", [](NodeState&, DeviceState&, RequestShape& a) { a.spill = 1_GiB; }},
      {"exclusive", [](NodeState&, DeviceState& c, RequestShape&) { c.exclusive = true; }},
      {"shared", [](NodeState&, DeviceState& c, RequestShape& a) { c.slices = 1, a.exclusive = true; }},
      {"16 slices on every device", [](NodeState&, DeviceState& c, RequestShape&) { c.isolated = 16; }},
      {"memory", [](NodeState&, DeviceState& c, RequestShape&) { c.free = 1023_MiB; }},
      {"compute", [](NodeState&, DeviceState& c, RequestShape&) { c.free_share = {2999}; }},
  };
  EXPECT_EQ(std::size(rows), node_rules().size() + device_rules().size())
      << "a rule without a row here is not tested";
  for (const Row& row : rows) {
    NodeState node;
    node.cpu_free = 64'000;
    node.host_free = 256_GiB;
    DeviceState device;
    device.usable = device.free = 16_GiB;
    RequestShape shape = asking(1, 3000, 1_GiB);
    const auto broken = [&]() -> std::string_view {
      Fleet fleet;
      node.model = static_cast<uint8_t>(*fleet.model("A10"));
      fleet.add(node, std::vector{device});
      if (fitting(fleet, 0, shape)) return "none";
      for (const NodeRule& r : node_rules())
        if (!r.holds(fleet.node(0), shape))
          return r.otherwise(fleet, fleet.node(0), shape).empty() ? "silent" : r.name;
      for (const DeviceRule& r : device_rules())
        if (!r.holds(device, 0, shape))
          return r.otherwise(device, shape, {"broken", "it"}).empty() ? "silent" : r.name;
      return "unknown";
    };
    ASSERT_EQ(broken(), "none");
    row.spoil(node, device, shape);
    EXPECT_EQ(broken(), row.name);
  }
}

TEST(Rules, apply_to_a_request_in_the_fleets_terms) {
  Fleet fleet;
  fleet.model("T4"), fleet.model("A10");
  Request r;
  r.memory = InTotal{8_GiB};
  r.devices = 2;
  r.share = {2500};
  r.models = {"A10", "H100"};
  r.cpu_milli = 4000;
  r.host_memory = 3_GiB;
  const RequestShape a = shape_of(r, fleet);
  EXPECT_EQ(a.memory, 4_GiB);
  EXPECT_EQ(a.devices, 2);
  EXPECT_EQ(a.share, Share{2500});
  EXPECT_EQ(a.models, 0b10u) << "an unknown model matches no node";
  EXPECT_EQ(a.cpu_milli, 4000u);
  EXPECT_EQ(a.host_memory, 3_GiB);
}

}  // namespace
}  // namespace carve::place
