#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/consolidation_plan.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/explanation.h"
#include "kubernetes/coordinator/cache/overcommit.h"

#include <gmock/gmock.h>

#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Names = std::vector<std::string_view>;

Cache cache_with(unsigned nodes, unsigned devices, Strategy strategy = Strategy::binpack) {
  Cache cache(strategy);
  for (unsigned n = 0; n < nodes; ++n)
    cache.set_node(node_object("n" + std::to_string(n), a10_devices(n, devices)));
  return cache;
}

// Creates the pod, binds it to the node as the scheduler would, and shows the cache the bound pod.
kubernetes::PodSlices place_pod(Cache& cache, const kubernetes::ObjectMeta& pod, const std::string& node) {
  cache.set_pod(pod);
  const auto slices = reserve_devices(cache, pod.uid, node);
  EXPECT_TRUE(slices) << slices.error();
  if (!slices) return {};
  cache.set_pod(bound(pod, *slices));
  return *slices;
}

std::string refusal(Cache& cache, const kubernetes::ObjectMeta& pod, const std::string& node) {
  cache.set_pod(pod);
  return std::string(filter_nodes(cache, pod.uid, Names{node}).front());
}

TEST(Cache, a_pod_gets_the_requested_part_of_a_device) {
  Cache cache = cache_with(1, 2);
  const auto slices = place_pod(cache, pod_object("p", 4_GiB, 3000), "n0");
  const kubernetes::PlacedSlice& slice = slices.containers.at("c");
  EXPECT_THAT(slice.parts, ElementsAre(kubernetes::PlacedPart{device_uuid(0, 0), 4_GiB, {3000}}));
  EXPECT_EQ(slice.isolation, Isolation::memory_and_compute);
  EXPECT_EQ(slices.node, "n0");
  EXPECT_THAT(device_uses(cache, "n0"),
              ElementsAre(fleet::DeviceUse{4_GiB, {3000}, 1, 1, false}, fleet::DeviceUse{}));
  cache.remove_pod("uid-of-p");
  EXPECT_THAT(device_uses(cache, "n0"), ElementsAre(fleet::DeviceUse{}, fleet::DeviceUse{}));
}

// A pod with the annotation carve.dev/parts.
kubernetes::ObjectMeta pod_of_parts(const std::string& name, const char* parts) {
  kubernetes::PodRequest request{.dialect = "carve"};
  request.containers["c"].amounts = {.parts = *parse_parts(parts)};
  return pod_object(name, request);
}

TEST(Cache, unequal_parts_are_placed_together_on_different_devices) {
  Cache cache = cache_with(2, 2);
  place_pod(cache, pod_object("other", 16_GiB), "n0");
  const auto slices = place_pod(cache, pod_of_parts("p", "4GiB:10%,16GiB:30%"), "n0");
  EXPECT_THAT(slices.containers.at("c").parts,
              ElementsAre(kubernetes::PlacedPart{device_uuid(0, 0), 4_GiB, {1000}},
                          kubernetes::PlacedPart{device_uuid(0, 1), 16_GiB, {3000}}));
  EXPECT_EQ(slices.containers.at("c").isolation, Isolation::memory_and_compute);
  EXPECT_THAT(device_uses(cache, "n0"), ElementsAre(fleet::DeviceUse{20_GiB, {1000}, 2, 2, false},
                                                    fleet::DeviceUse{16_GiB, {3000}, 1, 1, false}));
  cache.remove_pod("uid-of-p");
  EXPECT_THAT(device_uses(cache, "n0"),
              ElementsAre(fleet::DeviceUse{16_GiB, {}, 1, 1, false}, fleet::DeviceUse{}));
}

TEST(Cache, a_pod_whose_unequal_parts_do_not_all_fit_waits_with_a_reason_per_part) {
  Cache cache = cache_with(1, 2);
  place_pod(cache, pod_object("other", 16_GiB), "n0");
  EXPECT_EQ(refusal(cache, pod_of_parts("p", "8GiB,7GiB"), "n0"), "a device for each part");
  EXPECT_THAT(explain_waiting(cache, "uid-of-p"), HasSubstr("0/1 nodes can serve: 1 a device for each part"));
  EXPECT_THAT(explain_waiting(cache, "uid-of-p"),
              HasSubstr("part 1 (8 GiB) fits on device 1 only; part 2 (7 GiB) fits on device 1 only"));
  EXPECT_EQ(refusal(cache, pod_of_parts("q", "2GiB,30GiB"), "n0"), "too small");
  EXPECT_EQ(refusal(cache, pod_of_parts("r", "1GiB,2GiB,3GiB"), "n0"), "too few devices");
  EXPECT_EQ(refusal(cache, pod_of_parts("s", "2GiB,16GiB"), "n0"), "");
}

TEST(Cache, unequal_parts_are_weights_under_native_burst) {
  Cache cache(Strategy::binpack);
  kubernetes::NodeDevices devices = a10_devices(0, 2);
  devices.policy.effective = Policy::native_burst_share;
  cache.set_node(node_object("n0", devices));
  for (const char* name : {"p", "q"}) {
    const auto slices = place_pod(cache, pod_of_parts(name, "4GiB:60%,2GiB:70%"), "n0");
    EXPECT_EQ(slices.containers.at("c").parts.at(1).share, Share{7000});
  }
}

TEST(Cache, a_plan_moves_unequal_parts_as_a_whole) {
  Cache cache = cache_with(3, 2);
  place_pod(cache, pod_of_parts("p", "4GiB:10%,16GiB:30%"), "n0");
  place_pod(cache, pod_object("q", 1_GiB), "n1");
  place_pod(cache, pod_object("r", 1_GiB, 0, 2), "n2");
  const ClusterConsolidation plan = plan_consolidation(cache, 4);
  EXPECT_FALSE(plan.emptied.empty());
  for (const ClusterConsolidation::Move& move : plan.moves) EXPECT_EQ(move.from.size(), move.to.size());
  EXPECT_THAT(device_uses(cache, "n0"), ElementsAre(fleet::DeviceUse{16_GiB, {3000}, 1, 1, false},
                                                    fleet::DeviceUse{4_GiB, {1000}, 1, 1, false}))
      << "a plan changes nothing";
}

TEST(Cache, refusals_contain_the_names_of_the_rules) {
  Cache cache = cache_with(2, 1);
  kubernetes::NodeDevices shares_nothing = a10_devices(7, 1);
  shares_nothing.mode.desired = shares_nothing.mode.effective = NodeMode::exclusive;
  cache.set_node(node_object("whole", shares_nothing));
  cache.set_node(node_object("empty", a10_devices(8, 0)));
  place_pod(cache, pod_object("large", 20_GiB), "n0");
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
  cache.set_pod(pod);
  EXPECT_THAT(filter_nodes(cache, pod.uid, Names{"n0", "n1", "whole", "empty", "other"}),
              ElementsAre("memory", "", "other mode", "no agent", "no agent"));
  kubernetes::PodRequest bursting{.dialect = "carve"};
  bursting.containers["c"].amounts = {.memory_bytes = (1_GiB).count, .policy = Policy::native_burst_share};
  EXPECT_EQ(refusal(cache, pod_object("bursting", bursting), "n1"), "other policy");
  EXPECT_THAT(filter_nodes(cache, "uid-of-no-pod", Names{"n1"}), ElementsAre("the pod is not known"));
  EXPECT_EQ(refusal(cache, pod_object("huge", 30_GiB), "n1"), "too small");
  EXPECT_EQ(refusal(cache, pod_object("two", 1_GiB, 0, 2), "n1"), "too few devices");
  EXPECT_EQ(refusal(cache, pod_object("small", 128_MiB), "n1"), "less than a context");
  place_pod(cache, pod_object("share", 1_GiB, 8000), "n1");
  EXPECT_EQ(refusal(cache, pod_object("share-2", 1_GiB, 3000), "n1"), "compute");
}

TEST(Cache, the_17th_isolated_slice_waits_only_where_memory_is_isolated) {
  Cache cache = cache_with(1, 1);
  kubernetes::NodeDevices sharing = a10_devices(1, 1);
  sharing.mode.desired = sharing.mode.effective = NodeMode::none;
  cache.set_node(node_object("sharing", sharing));
  for (int i = 0; i < 16; ++i) {
    place_pod(cache, pod_object("isolated-" + std::to_string(i), 256_MiB), "n0");
    place_pod(cache, pod_object("sharing-" + std::to_string(i), 256_MiB), "sharing");
  }
  const kubernetes::ObjectMeta pod = pod_object("one-more", 256_MiB);
  cache.set_pod(pod);
  EXPECT_THAT(filter_nodes(cache, pod.uid, Names{"n0", "sharing"}),
              ElementsAre("16 slices on every device", ""));
  EXPECT_THAT(explain_waiting(cache, pod.uid), HasSubstr("1/2 nodes can serve: 1 16 slices on every device"));
}

TEST(Cache, a_migration_that_makes_room_is_proposed) {
  Cache cache = cache_with(2, 1);
  place_pod(cache, pod_object("large", 10_GiB), "n0");
  place_pod(cache, pod_object("small", 6_GiB), "n0");
  place_pod(cache, pod_object("other", 15_GiB), "n1");
  const kubernetes::ObjectMeta pod = pod_object("p", 12_GiB);
  cache.set_pod(pod);
  EXPECT_THAT(explain_waiting(cache, pod.uid),
              HasSubstr("it fits on n1; a migration of a/small would make room"));
  EXPECT_EQ(refusal(cache, pod, "n0"), "memory") << "nothing is moved";
  const kubernetes::ObjectMeta huge = pod_object("huge", 20_GiB);
  cache.set_pod(huge);
  EXPECT_THAT(explain_waiting(cache, huge.uid), Not(HasSubstr("migration"))) << "one migration is not enough";
}

TEST(Cache, shares_are_weights_under_native_burst) {
  Cache cache(Strategy::binpack);
  kubernetes::NodeDevices devices = a10_devices(0, 1);
  devices.policy.effective = Policy::native_burst_share;
  devices.best_effort = BestEffort::refuse;
  cache.set_node(node_object("n0", devices));
  for (int i = 0; i < 3; ++i) {
    const auto slices = place_pod(cache, pod_object("p" + std::to_string(i), 1_GiB, 6000), "n0");
    EXPECT_EQ(slices.containers.at("c").parts.front().share, Share{6000});
    EXPECT_EQ(slices.containers.at("c").policy, Policy::native_burst_share);
  }
  EXPECT_EQ(refusal(cache, pod_object("without-a-share", 1_GiB), "n0"), "");
}

TEST(Cache, whole_and_shared_slices_exclude_each_other) {
  Cache cache = cache_with(1, 2);
  kubernetes::PodRequest request{.dialect = "carve"};
  request.containers["c"].amounts.exclusive = true;
  place_pod(cache, pod_object("shared", 1_GiB), "n0");
  const auto slices = place_pod(cache, pod_object("whole", request), "n0");
  EXPECT_THAT(slices.containers.at("c").parts,
              ElementsAre(kubernetes::PlacedPart{device_uuid(0, 1), 22731_MiB, whole_device}));
  EXPECT_EQ(refusal(cache, pod_object("whole-2", request), "n0"), "shared");
  EXPECT_THAT(explain_waiting(cache, "uid-of-whole-2"),
              HasSubstr("device 0: 1 slice on it, but the request is exclusive; "
                        "device 1: an exclusive slice holds the device"));
}

// The largest container is placed first, and each gets its own slice.
TEST(Cache, containers_of_a_pod_are_placed_together_or_not_at_all) {
  Cache cache = cache_with(1, 2);
  kubernetes::PodRequest request{.dialect = "carve"};
  request.containers["small"].amounts = {.memory_bytes = (4_GiB).count};
  request.containers["large"].amounts = {.memory_bytes = (20_GiB).count};
  request.containers["wide"].amounts = {.memory_bytes = (2_GiB).count, .devices = 2};
  const auto slices = place_pod(cache, pod_object("p", request), "n0");
  ASSERT_EQ(slices.containers.size(), 3u);
  EXPECT_EQ(slices.containers.at("wide").parts.size(), 2u);
  EXPECT_NE(slices.containers.at("small").parts.front().device,
            slices.containers.at("large").parts.front().device);
  request.containers.erase("wide");
  Cache two = cache_with(1, 1);
  EXPECT_EQ(refusal(two, pod_object("p", request), "n0"), "the containers together");
}

TEST(Cache, a_request_may_select_devices_by_uuid) {
  Cache cache = cache_with(1, 3);
  kubernetes::PodRequest request{.dialect = "carve"};
  request.containers["c"].amounts = {.memory_bytes = (16_GiB).count};
  request.containers["c"].amounts.device_uuids = {text(device_uuid(0, 1)), text(device_uuid(0, 2))};
  EXPECT_EQ(place_pod(cache, pod_object("p", request), "n0").containers.at("c").parts.front().device,
            device_uuid(0, 1));
  EXPECT_EQ(place_pod(cache, pod_object("q", request), "n0").containers.at("c").parts.front().device,
            device_uuid(0, 2));
  EXPECT_EQ(refusal(cache, pod_object("r", request), "n0"), "other device");
  request.containers["c"].amounts.device_uuids = {"a text that is not a UUID"};
  EXPECT_EQ(refusal(cache, pod_object("s", request), "n0"), "other device");
}

TEST(Cache, the_strategies_of_the_pod_and_the_node_choose_the_device) {
  Cache cache = cache_with(1, 2);
  kubernetes::NodeDevices spread = a10_devices(1, 2);
  spread.placement = Strategy::spread;
  cache.set_node(node_object("spread", spread));
  const auto device_of = [&](const char* name, const char* node, std::optional<Strategy> strategy = {}) {
    kubernetes::PodRequest request{.dialect = "carve"};
    request.containers["c"].amounts = {.memory_bytes = (1_GiB).count};
    request.containers["c"].amounts.strategy = strategy;
    return place_pod(cache, pod_object(name, request), node)
               .containers.at("c")
               .parts.front()
               .device.bytes[15] -
           1;
  };
  EXPECT_EQ(device_of("a", "n0"), 0);
  EXPECT_EQ(device_of("b", "n0"), 0);
  EXPECT_EQ(device_of("c", "n0", Strategy::spread), 1);
  EXPECT_EQ(device_of("d", "spread"), 0);
  EXPECT_EQ(device_of("e", "spread"), 1);
  EXPECT_EQ(device_of("f", "spread", Strategy::binpack), 0);
}

TEST(Cache, exactly_one_node_has_the_highest_score) {
  Cache cache = cache_with(3, 1);
  place_pod(cache, pod_object("standing", 8_GiB), "n1");
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
  cache.set_pod(pod);
  const auto scores = prioritize_nodes(cache, pod.uid, Names{"n0", "n1", "n2", "other"});
  EXPECT_EQ(scores[1], 10) << "binpack prefers this node";
  EXPECT_LT(scores[0], 10);
  EXPECT_EQ(scores[3], 0);
  EXPECT_EQ(prioritize_nodes(cache, pod.uid, Names{"n2"}).front(), 10);
}

// Covers the time between a reservation and the object that confirms it.
TEST(Cache, a_reservation_is_kept_until_its_outcome_is_known) {
  Cache cache = cache_with(2, 1);
  const kubernetes::ObjectMeta pod = pod_object("p", 20_GiB), other = pod_object("q", 20_GiB);
  ASSERT_TRUE(cache.know_pod(pod));
  ASSERT_TRUE(cache.know_pod(other));
  const auto first = reserve_devices(cache, pod.uid, "n0");
  ASSERT_TRUE(first) << first.error();
  EXPECT_THAT(unconfirmed_pods(cache), ElementsAre(pod.uid));
  EXPECT_EQ(*reserve_devices(cache, pod.uid, "n0"), *first) << "a repeated call";
  EXPECT_THAT(reserve_devices(cache, pod.uid, "n1").error(), HasSubstr("is being bound to node n0"));
  EXPECT_THAT(filter_nodes(cache, pod.uid, Names{"n0", "n1"}), ElementsAre("", "bound to another node"));
  EXPECT_THAT(reserve_devices(cache, other.uid, "n0").error(),
              HasSubstr("no longer fits on node n0: memory"));
  cache.replace_pods({{other.uid, other}});
  EXPECT_THAT(unconfirmed_pods(cache), ElementsAre(pod.uid)) << "the list may be older than the pod";
  cache.set_pod(pod);
  EXPECT_THAT(unconfirmed_pods(cache), ElementsAre(pod.uid)) << "the object is older than the binding";

  cache.release(pod.uid);
  EXPECT_TRUE(reserve_devices(cache, other.uid, "n0"));
  cache.set_pod(bound(other, *reserve_devices(cache, other.uid, "n0")));
  EXPECT_THAT(unconfirmed_pods(cache), IsEmpty());
  cache.release(other.uid);
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 20_GiB) << "a confirmed placement is not released";
}

TEST(Cache, a_removed_node_keeps_the_slices_of_its_pods) {
  Cache cache = cache_with(1, 1);
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
  const auto slices = place_pod(cache, pod, "n0");
  cache.remove_node("n0");
  EXPECT_EQ(refusal(cache, pod_object("q", 1_GiB), "n0"), "no agent");
  cache.set_node(node_object("n0", a10_devices(0, 1)));
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 4_GiB);
  cache.remove_node("n0");
  cache.remove_pod(pod.uid);
  EXPECT_THAT(explain_waiting(cache, "uid-of-q"), HasSubstr("0/0 nodes"))
      << "the node is removed with its last pod";
}

TEST(Cache, pods_may_arrive_before_their_node) {
  Cache earlier = cache_with(1, 2), later(Strategy::binpack);
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB, 3000);
  const auto slices = place_pod(earlier, pod, "n0");
  later.set_pod(bound(pod, slices));
  later.set_node(node_object("n0", a10_devices(0, 2)));
  EXPECT_EQ(device_uses(later, "n0"), device_uses(earlier, "n0"));
}

TEST(Cache, an_unreadable_node_serves_no_new_pods) {
  Cache cache = cache_with(1, 1);
  const auto slices = place_pod(cache, pod_object("p", 4_GiB), "n0");
  kubernetes::ObjectMeta damaged = node_object("n0", a10_devices(0, 1));
  damaged.annotations[kubernetes::devices_annotation] = "{";
  cache.set_node(damaged);
  EXPECT_EQ(refusal(cache, pod_object("q", 1_GiB), "n0"), "no agent");
  EXPECT_THAT(unreadable_objects(cache).at("node n0"), HasSubstr("carve.dev/devices"));
  cache.set_node(node_object("n0", a10_devices(0, 1)));
  EXPECT_THAT(unreadable_objects(cache), IsEmpty());
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 4_GiB);
}

TEST(Cache, unreadable_slices_keep_their_last_reservation) {
  Cache cache = cache_with(1, 1);
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
  place_pod(cache, pod, "n0");
  kubernetes::ObjectMeta damaged = pod;
  damaged.annotations[kubernetes::slices_annotation] = R"({"v":9})";
  cache.set_pod(damaged);
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 4_GiB);
  EXPECT_THAT(unreadable_objects(cache).at("pod a/p"), HasSubstr("carve.dev/slices version 9"));
}

TEST(Cache, an_overcommitted_device_stays_within_the_engines_limits) {
  Cache cache = cache_with(1, 1);
  place_pod(cache, pod_object("p", 20_GiB, 9000), "n0");
  cache.set_node(node_object("n0", a10_devices(0, 1, 10_GiB)));
  EXPECT_EQ(refusal(cache, pod_object("q", 1_GiB), "n0"), "memory");
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 20_GiB);
}

TEST(Cache, one_message_explains_why_a_pod_waits) {
  Cache cache = cache_with(3, 1);
  for (int i = 0; i < 3; ++i)
    place_pod(cache, pod_object("p" + std::to_string(i), Bytes{(20_GiB).count - i * (1_GiB).count}),
              "n" + std::to_string(i));
  const kubernetes::ObjectMeta pod = pod_object("q", 8_GiB);
  cache.set_pod(pod);
  EXPECT_EQ(explain_waiting(cache, pod.uid),
            "0/3 nodes can serve: 3 memory. Nearest n2: device 0: 8 GiB needed, 4299 MiB free. With 3893 MiB "
            "less it fits on n2");
}

TEST(Cache, the_engine_is_rebuilt_after_many_nodes_were_removed) {
  Cache cache = cache_with(2, 1);
  const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
  place_pod(cache, pod, "n0");
  for (unsigned i = 0; i < 200; ++i) {
    const std::string name = "spot-" + std::to_string(i);
    cache.set_node(node_object(name, a10_devices(100 + i, 1)));
    cache.remove_node(name);
  }
  EXPECT_GT(cache.rebuilds(), 1u);
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 4_GiB);
  EXPECT_EQ(refusal(cache, pod_object("q", 20_GiB), "n0"), "memory");
  EXPECT_EQ(refusal(cache, pod_object("q", 20_GiB), "n1"), "");
}

TEST(Cache, views_show_models_units_and_overcommitted_devices) {
  Cache cache(Strategy::binpack);
  cache.set_node(node_object("n0", a10_devices(0, 1)));
  kubernetes::PodRequest request{.dialect = "ack"};
  request.containers["c"] = {.amounts = {.memory_bytes = (16_GiB).count}, .unit = (1_GiB).count, .units = 16};
  cache.set_pod(pod_object("p", request));
  EXPECT_THAT(device_models(cache), ::testing::ElementsAre("NVIDIA A10"));
  EXPECT_THAT(pods_in_units(cache)[(1_GiB).count], ::testing::ElementsAre("a/p"));
  const auto slices = reserve_devices(cache, "uid-of-p", "n0");
  ASSERT_TRUE(slices);
  EXPECT_TRUE(overcommitted_devices(cache).empty());
  cache.set_pod(bound(pod_object("q", request), *slices));
  ASSERT_EQ(overcommitted_devices(cache).size(), 1u);
  EXPECT_THAT(text(overcommitted_devices(cache)[0]), HasSubstr("Pods: a/p "));
  EXPECT_EQ(overcommitted_devices(cache)[0].pods.size(), 2u);
  cache.remove_pod("uid-of-q");
  EXPECT_TRUE(overcommitted_devices(cache).empty());
  cache.set_node(node_object("n0", a10_devices(0, 1, 8_GiB)));
  EXPECT_EQ(overcommitted_devices(cache).size(), 1u) << "the device shrank";
  cache.remove_node("n0");
  EXPECT_TRUE(overcommitted_devices(cache).empty()) << "a node without an agent has no devices";
  EXPECT_THAT(device_models(cache), IsEmpty());
}

TEST(Cache, ignores_an_older_state_that_arrives_late) {
  Cache cache(Strategy::binpack);
  cache.set_node(node_object("n0", a10_devices(0, 1)));
  const auto at = [](kubernetes::ObjectMeta pod, const char* version) {
    pod.resource_version = version;
    return pod;
  };
  cache.set_pod(at(pod_object("p", 16_GiB), "9"));
  const auto slices = reserve_devices(cache, "uid-of-p", "n0");
  ASSERT_TRUE(slices);
  cache.set_pod(at(bound(pod_object("p", 16_GiB), *slices), "20"));  // Read by the binder.
  cache.set_pod(at(pod_object("p", 16_GiB), "15"));  // From the watch, older than the binding.
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 16_GiB);
  cache.set_pod(at(pod_object("p", 16_GiB), "21"));
  EXPECT_EQ(device_uses(cache, "n0").front().memory, Bytes{});
}

// After a repeated list, 50,000 pods may be unchanged, and parsing one takes 13 us.
TEST(Cache, does_not_parse_a_version_twice) {
  Cache cache(Strategy::binpack);
  const auto at = [](kubernetes::ObjectMeta object, const char* version) {
    object.resource_version = version;
    return object;
  };
  const auto damaged = [](kubernetes::ObjectMeta object, const char* annotation) {
    object.annotations[annotation] = "{";
    return object;
  };
  const kubernetes::ObjectMeta node = at(node_object("n0", a10_devices(0, 1)), "5"),
                               pod = at(pod_object("p", 4_GiB), "9");
  cache.set_node(node);
  cache.set_pod(pod);
  const kubernetes::ObjectMeta bad_node = damaged(node, kubernetes::devices_annotation);
  const kubernetes::ObjectMeta bad_pod = damaged(pod, kubernetes::slices_annotation);
  cache.replace_nodes({{node.uid, bad_node}});
  cache.replace_pods({{pod.uid, bad_pod}});
  EXPECT_THAT(unreadable_objects(cache), IsEmpty());
  cache.replace_nodes({{node.uid, at(bad_node, "6")}});
  cache.replace_pods({{pod.uid, at(bad_pod, "10")}});
  EXPECT_EQ(unreadable_objects(cache).size(), 2u);

  cache.remove_node("n0");
  cache.set_node(node);
  EXPECT_EQ(refusal(cache, pod_object("q", 1_GiB), "n0"), "") << "a node that returns is read again";
}

TEST(Cache, a_plan_empties_devices_but_moves_nothing) {
  Cache cache(Strategy::spread);
  for (unsigned n = 0; n < 2; ++n) cache.set_node(node_object("n" + std::to_string(n), a10_devices(n, 2)));
  const std::pair<const char*, const char*> pods[] = {{"p", "n0"}, {"q", "n0"}, {"r", "n1"}};
  for (const auto& [name, node] : pods) {
    cache.set_pod(pod_object(name, 4_GiB));
    const auto slices = reserve_devices(cache, "uid-of-" + std::string(name), node);
    ASSERT_TRUE(slices) << slices.error();
    cache.set_pod(bound(pod_object(name, 4_GiB), *slices));
  }
  const ClusterConsolidation plan = plan_consolidation(cache, 2);
  EXPECT_EQ(plan.emptied.size(), 2u);
  EXPECT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moved, 8_GiB);
  for (const ClusterConsolidation::Move& move : plan.moves) {
    EXPECT_EQ(move.memory, 4_GiB);
    EXPECT_THAT(move.pod, ::testing::StartsWith("a/"));
    EXPECT_EQ(move.from.size(), 1u);
  }
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 4_GiB);
  EXPECT_TRUE(plan_consolidation(cache, 4).emptied.size() < 4u) << "at least one device must keep slices";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
