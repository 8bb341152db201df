#include "controller/nodes/slice_forecast.h"

#include <gmock/gmock.h>

#include "controller/nodes/node_rules.h"
#include "controller/objects/testing/journals.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t gib = 1ull << 30;

Object node_object(const std::string& name, const objects::NodeSpec& spec,
                   const objects::NodeStatus& status) {
  return {.key = node_key(name), .spec = spec, .status = status};
}

// Devices of 24 GiB, empty.
objects::NodeStatus with_devices(unsigned count, const char* mode = "memory-and-compute") {
  objects::NodeStatus out{
      .state = NodePhase::running, .mode = {.effective = mode}, .memory_unit = {.effective = "1GiB"}};
  for (unsigned i = 0; i < count; ++i)
    out.devices.push_back(
        {.index = i, .usable_bytes = 24 * gib, .free_bytes = 24 * gib, .free_share_bp = 10'000});
  return out;
}

TEST(SliceForecast, the_fullest_node_with_room_comes_first) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  const auto add = [&](const std::string& name, uint64_t free, const char* placement,
                       const objects::NodeSpec& spec, NodePhase state = NodePhase::running) {
    objects::NodeStatus status = with_devices(1);
    status.state = state;
    status.placement = placement;
    status.devices[0].free_bytes = free * gib;
    ASSERT_TRUE(objects.add(node_object(name, spec, status)));
  };
  const Amounts request{.memory_bytes = 4 * gib};
  EXPECT_EQ(SliceForecast(objects).nodes_to_ask({}, request).error().kind, FailureKind::unavailable);
  add("a", 9, "binpack", {.pool = "p"});
  add("b", 5, "binpack", {});
  add("c", 5, "spread", {});
  add("d", 12, "spread", {.pool = "p"});
  add("e", 4, "binpack", {.schedulable = false});
  add("f", 4, "binpack", {}, NodePhase::stopped);
  add("g", 4, "binpack", {.stopped = true});
  add("h", 3, "binpack", {});
  EXPECT_THAT(*SliceForecast(objects).nodes_to_ask({}, request), ElementsAre("b", "c", "a", "d", "h"))
      << "h has no room: it is last";
  EXPECT_EQ(SliceForecast(objects).nodes_to_ask({.pool = "p"}, request).error().kind,
            FailureKind::failed_precondition);
  ASSERT_TRUE(objects.add({.key = pool_key("p")}));
  EXPECT_THAT(*SliceForecast(objects).nodes_to_ask({.pool = "p"}, request), ElementsAre("a", "d"));
}

// The node's own strategy chooses its devices, as its agent does.
TEST(SliceForecast, a_node_that_spreads_takes_its_emptiest_device) {
  for (const char* placement : {"binpack", "spread"}) {
    NoJournal journal;
    JournaledRegistry objects(journal, {}, 0);
    objects::NodeStatus status = with_devices(2);
    status.placement = placement;
    status.devices[0].free_bytes = 12 * gib;
    ASSERT_TRUE(objects.add(node_object("a", {}, status)));
    const auto place = SliceForecast(objects).place({}, {.memory_bytes = gib});
    ASSERT_TRUE(place);
    EXPECT_THAT(place->devices, ElementsAre(std::string(placement) == "spread" ? 1u : 0u)) << placement;
  }
}

TEST(SliceForecast, spill_needs_a_device_that_migrates) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  objects::NodeStatus status = with_devices(1);
  const Amounts request{.memory_bytes = gib, .spill_bytes = gib};
  ASSERT_TRUE(objects.add(node_object("a", {}, status)));
  EXPECT_THAT(SliceForecast(objects).place({}, request).error().message, HasSubstr("managed memory"));
  status.devices[0].migrates = true;
  ASSERT_TRUE(objects.add(node_object("b", {}, status)));
  EXPECT_EQ(SliceForecast(objects).place({}, request)->node, "b");
}

TEST(SliceForecast, a_node_with_too_many_devices_is_not_used) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  ASSERT_TRUE(objects.add(node_object("a", {}, with_devices(33))));
  EXPECT_EQ(SliceForecast(objects).place({}, {.memory_bytes = gib}).error().message,
            "node a: the node has no devices");
  ASSERT_TRUE(objects.add(node_object("b", {}, with_devices(32))));
  EXPECT_EQ(SliceForecast(objects).place({}, {.memory_bytes = gib})->node, "b");
}

TEST(SliceForecast, a_copy_places_slices_independently) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  ASSERT_TRUE(objects.add(node_object("a", {}, with_devices(1))));
  SliceForecast first(objects);
  ASSERT_TRUE(first.place({}, {.memory_bytes = 20 * gib}));
  SliceForecast second = first;
  EXPECT_FALSE(second.place({}, {.memory_bytes = 8 * gib})) << "the first slice counts";
  ASSERT_TRUE(first.place({}, {.memory_bytes = 4 * gib}));
  EXPECT_TRUE(second.place({}, {.memory_bytes = 4 * gib})) << "the second one does not";
}

TEST(SliceForecast, a_request_that_fits_on_no_empty_node_is_rejected_permanently) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  const auto checked = [&](uint64_t memory, uint64_t cpu_milli = 0) {
    const auto fits = check_ever_fits(objects, {}, {.memory_bytes = memory * gib}, {.cpu_milli = cpu_milli},
                                      fmt::format("{}GiB", memory));
    return fits ? "" : fits.error().message;
  };
  EXPECT_EQ(checked(30), "") << "no node is known yet";
  objects::NodeStatus status = with_devices(2);
  status.cpu_milli = 8000;
  for (objects::NodeDeviceStatus& device : status.devices) device.free_bytes = 0;
  status.state = NodePhase::stopped;
  ASSERT_TRUE(objects.add(node_object("n1", {}, status)));
  EXPECT_EQ(checked(24), "") << "the devices are full now";
  EXPECT_EQ(checked(30),
            "spec.gpu.memory: '30GiB': the largest device has 24 GiB usable; request at most 24 GiB");
  EXPECT_THAT(checked(4, 9000), HasSubstr("spec: fits on no node, even if all are empty"));
}

TEST(SliceForecast, a_node_gets_requests_that_its_mode_provides) {
  const Amounts plain{.memory_bytes = gib}, shared{.memory_bytes = gib, .share_bp = 2000},
      whole{.exclusive = true}, none{.memory_bytes = gib, .isolation = Isolation::none},
      memory{.memory_bytes = gib, .isolation = Isolation::memory},
      both{.memory_bytes = gib, .share_bp = 2000, .isolation = Isolation::memory_and_compute};
  const auto asked = [](const char* mode, const Amounts& request) {
    NoJournal journal;
    JournaledRegistry objects(journal, {}, 0);
    EXPECT_TRUE(
        objects.add(node_object("n1", {}, {.state = NodePhase::running, .mode = {.effective = mode}})));
    const auto out = SliceForecast(objects).nodes_to_ask({}, request);
    EXPECT_TRUE(out || out.error().kind == FailureKind::failed_precondition);
    return out.has_value();
  };
  const std::tuple<const char*, std::vector<const Amounts*>, std::vector<const Amounts*>> rows[] = {
      {"memory-and-compute", {&plain, &shared, &whole, &memory, &both}, {&none}},
      {"memory", {&plain, &whole, &memory}, {&shared, &none, &both}},
      {"none", {&plain, &whole, &none}, {&shared, &memory, &both}},
      {"exclusive", {&whole}, {&plain, &shared, &none, &memory, &both}}};
  for (const auto& [mode, yes, no] : rows) {
    for (const auto* request : yes) EXPECT_TRUE(asked(mode, *request)) << mode;
    for (const auto* request : no) EXPECT_FALSE(asked(mode, *request)) << mode;
  }
  EXPECT_EQ(isolation_of(node_object("a", {}, {.mode = {.effective = "none"}})), Isolation::none);
  EXPECT_EQ(isolation_of(node_object("a", {}, {.mode = {.effective = "memory"}})), Isolation::memory);
  EXPECT_EQ(isolation_of(node_object("a", {}, {.mode = {.effective = "memory-and-compute"}})), std::nullopt);
}

TEST(SliceForecast, a_node_with_a_taint_accepts_only_slices_that_tolerate_it) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  const auto add = [&](const char* name, const char* taint) {
    objects::NodeStatus status{.state = NodePhase::running};
    if (*taint != '\0') status.taints = {taint};
    ASSERT_TRUE(objects.add(node_object(name, {}, status)));
  };
  add("a", "gpu=a10:NoSchedule");
  EXPECT_EQ(SliceForecast(objects).nodes_to_ask({}, {}).error().message,
            "no node accepts the slice: node a has the taint gpu=a10:NoSchedule");
  add("b", "slow=:PreferNoSchedule");
  add("c", "");
  EXPECT_THAT(*SliceForecast(objects).nodes_to_ask({}, {}), ElementsAre("c", "b"));
  const NodeChoice bears{.tolerations = {{.key = "gpu", .value = "a10"}}};
  EXPECT_THAT(*SliceForecast(objects).nodes_to_ask(bears, {}), ElementsAre("a", "c", "b"));
}

TEST(SliceForecast, a_pool_may_refuse_slices_without_a_share) {
  NoJournal journal;
  JournaledRegistry objects(journal, {}, 0);
  ASSERT_TRUE(
      objects.add({.key = pool_key("p"), .spec = objects::PoolSpec{.best_effort = BestEffortRule::refuse}}));
  ASSERT_TRUE(objects.add(node_object("a", {.pool = "p"}, {.state = NodePhase::running})));
  EXPECT_EQ(SliceForecast(objects).nodes_to_ask({}, {}).error().message,
            "no node accepts the slice: pool p of node a refuses slices without a share");
  EXPECT_TRUE(SliceForecast(objects).nodes_to_ask({}, {.share_bp = 100}));
  EXPECT_TRUE(SliceForecast(objects).nodes_to_ask({}, {.exclusive = true}));
}

struct OneForecast {
  NoJournal journal;
  JournaledRegistry objects{journal, {}, 0};

  void add(const std::string& name, const objects::NodeStatus& status) {
    ASSERT_TRUE(objects.add(node_object(name, {}, status)));
  }
};

std::string placed(SliceForecast& forecast, const Amounts& request) {
  const auto place = forecast.place({}, request);
  if (!place) return place.error().message;
  return fmt::format("{}:{}", place->node, fmt::join(place->devices, ","));
}

TEST(SliceForecast, each_slice_counts_for_the_next) {
  OneForecast nodes;
  nodes.add("a", with_devices(2));
  SliceForecast forecast(nodes.objects);
  const Amounts request{.memory_bytes = 10 * gib, .share_bp = 4000};
  EXPECT_EQ(placed(forecast, request), "a:0");
  EXPECT_EQ(placed(forecast, request), "a:0");
  EXPECT_EQ(placed(forecast, request), "a:1");
  EXPECT_EQ(placed(forecast, {.memory_bytes = gib, .share_bp = 3000}), "a:1") << "20 % are left of device 0";
  EXPECT_EQ(placed(forecast, {.exclusive = true}).substr(0, 8), "node a: ");
  EXPECT_THAT(placed(forecast, {.memory_bytes = 30 * gib}), HasSubstr("node a: "));
}

TEST(SliceForecast, a_weight_does_not_reduce_the_guaranteed_shares) {
  OneForecast nodes;
  objects::NodeStatus status = with_devices(1);
  status.devices[0].policy = "native-burst-share";
  nodes.add("a", status);
  SliceForecast forecast(nodes.objects);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(placed(forecast, {.memory_bytes = gib, .share_bp = 6000}), "a:0");
}

TEST(SliceForecast, the_seventeenth_isolated_slice_waits) {
  OneForecast nodes;
  objects::NodeStatus status = with_devices(1);
  status.devices[0].slices = status.devices[0].isolated_slices = 15;
  nodes.add("a", status);
  SliceForecast forecast(nodes.objects);
  EXPECT_EQ(placed(forecast, {.memory_units = 1}), "a:0");
  EXPECT_THAT(placed(forecast, {.memory_units = 1}), HasSubstr("16"));
}

TEST(SliceForecast, a_node_with_room_comes_first) {
  OneForecast nodes;
  objects::NodeStatus full = with_devices(1);
  full.devices[0].free_bytes = gib;
  nodes.add("full", full);
  nodes.add("large", with_devices(1));
  SliceForecast forecast(nodes.objects);
  EXPECT_THAT(*forecast.nodes_to_ask({}, {.memory_bytes = gib}), ElementsAre("full", "large"));
  EXPECT_THAT(*forecast.nodes_to_ask({}, {.memory_bytes = 2 * gib}), ElementsAre("large", "full"));
}

TEST(SliceForecast, the_size_of_a_context_is_reported) {
  OneForecast nodes;
  objects::NodeStatus status = with_devices(1);
  status.contexts_in_slice = true;
  status.devices[0].context_bytes = 256 << 20;
  nodes.add("a", status);
  SliceForecast forecast(nodes.objects);
  EXPECT_THAT(placed(forecast, {.memory_bytes = 128 << 20}), HasSubstr("256 MiB"));
  EXPECT_EQ(placed(forecast, {.memory_bytes = 512 << 20}), "a:0");
}

TEST(SliceForecast, cores_and_memory_of_the_machine_are_considered) {
  OneForecast nodes;
  objects::NodeStatus status = with_devices(1);
  status.cpu_milli = 4000;
  nodes.add("a", status);
  const objects::ServiceSpec spec{.cpu = {.request = "500m"}};
  const objects::ServiceStatus running{.replica_list = {{.node = "a"}, {.index = 1, .node = "elsewhere"}}};
  ASSERT_TRUE(
      nodes.objects.add({.key = {objects::Kind::service, "default", "s"}, .spec = spec, .status = running}));
  SliceForecast forecast(nodes.objects);
  forecast.count_replicas(nodes.objects);
  const Amounts request{.memory_bytes = gib};
  EXPECT_TRUE(forecast.place({}, request, {.cpu_milli = 3000}));
  EXPECT_THAT(forecast.place({}, request, {.cpu_milli = 1000}).error().message,
              HasSubstr("node a: a replica requests 1 cores, but only 0.5 of 4 are free"));
  EXPECT_TRUE(forecast.place({}, request, {.cpu_milli = 500}));
}

}  // namespace
}  // namespace carve::controller
