#include "cluster/books/books.h"

#include <gmock/gmock.h>

#include "cluster/snapshot/testing/cluster_objects.h"

namespace carve::cluster {
namespace {

using namespace cluster::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Names = std::vector<std::string_view>;

Books books_with(unsigned nodes, unsigned devices, Strategy strategy = Strategy::binpack) {
  Books books(strategy);
  for (unsigned n = 0; n < nodes; ++n)
    books.set_node(node_object("n" + std::to_string(n), a10_devices(n, devices)));
  return books;
}

// The pod is created, the scheduler binds it to the node, and the watch shows it.
kube::PodSlices place_pod(Books& books, const kube::ObjectMeta& pod, const std::string& node) {
  books.set_pod(pod);
  const auto slices = books.reserve(pod.uid, node);
  EXPECT_TRUE(slices) << slices.error();
  if (!slices) return {};
  books.set_pod(bound(pod, *slices));
  return *slices;
}

std::string refusal(Books& books, const kube::ObjectMeta& pod, const std::string& node) {
  books.set_pod(pod);
  return std::string(books.filter(pod.uid, Names{node}).front());
}

TEST(Books, a_pod_gets_the_part_of_a_device_that_it_asks_for) {
  Books books = books_with(1, 2);
  const auto slices = place_pod(books, pod_object("p", 4_GiB, 3000), "n0");
  const kube::PlacedSlice& slice = slices.containers.at("c");
  EXPECT_THAT(slice.parts, ElementsAre(kube::PlacedPart{device_uuid(0, 0), 4_GiB, {3000}}));
  EXPECT_EQ(slice.isolation, Isolation::memory_and_compute);
  EXPECT_EQ(slices.node, "n0");
  EXPECT_THAT(books.devices("n0"), ElementsAre(DeviceBook{4_GiB, {3000}, 1, 1, false}, DeviceBook{}));
  books.remove_pod("uid-of-p");
  EXPECT_THAT(books.devices("n0"), ElementsAre(DeviceBook{}, DeviceBook{}));
}

TEST(Books, refusals_have_the_names_of_the_rules) {
  Books books = books_with(2, 1);
  kube::NodeDevices shares_nothing = a10_devices(7, 1);
  shares_nothing.mode.desired = shares_nothing.mode.effective = kube::NodeMode::exclusive;
  books.set_node(node_object("whole", shares_nothing));
  books.set_node(node_object("empty", a10_devices(8, 0)));
  place_pod(books, pod_object("large", 20_GiB), "n0");
  const kube::ObjectMeta pod = pod_object("p", 4_GiB);
  books.set_pod(pod);
  EXPECT_THAT(books.filter(pod.uid, Names{"n0", "n1", "whole", "empty", "other"}),
              ElementsAre("memory", "", "other mode", "no agent", "no agent"));
  kube::PodRequest bursting{.dialect = "carve"};
  bursting.containers["c"] = {.memory = (1_GiB).count, .policy = Policy::native_burst_share};
  EXPECT_EQ(refusal(books, pod_object("bursting", bursting), "n1"), "other policy");
  EXPECT_THAT(books.filter("uid-of-no-pod", Names{"n1"}), ElementsAre("the pod is not known"));
  EXPECT_EQ(refusal(books, pod_object("huge", 30_GiB), "n1"), "too small");
  EXPECT_EQ(refusal(books, pod_object("two", 1_GiB, 0, 2), "n1"), "too few devices");
  EXPECT_EQ(refusal(books, pod_object("small", 128_MiB), "n1"), "less than a context");
  place_pod(books, pod_object("share", 1_GiB, 8000), "n1");
  EXPECT_EQ(refusal(books, pod_object("share-2", 1_GiB, 3000), "n1"), "compute");
}

TEST(Books, the_17th_isolated_slice_waits_where_memory_is_isolated) {
  Books books = books_with(1, 1);
  kube::NodeDevices sharing = a10_devices(1, 1);
  sharing.mode.desired = sharing.mode.effective = kube::NodeMode::none;
  books.set_node(node_object("sharing", sharing));
  for (int i = 0; i < 16; ++i) {
    place_pod(books, pod_object("isolated-" + std::to_string(i), 256_MiB), "n0");
    place_pod(books, pod_object("sharing-" + std::to_string(i), 256_MiB), "sharing");
  }
  const kube::ObjectMeta pod = pod_object("one-more", 256_MiB);
  books.set_pod(pod);
  EXPECT_THAT(books.filter(pod.uid, Names{"n0", "sharing"}), ElementsAre("16 slices on every device", ""));
  EXPECT_THAT(books.explain(pod.uid), HasSubstr("1/2 nodes can serve: 1 16 slices on every device"));
}

TEST(Books, a_migration_that_makes_room_is_named) {
  Books books = books_with(2, 1);
  place_pod(books, pod_object("large", 10_GiB), "n0");
  place_pod(books, pod_object("small", 6_GiB), "n0");
  place_pod(books, pod_object("other", 15_GiB), "n1");
  const kube::ObjectMeta pod = pod_object("p", 12_GiB);
  books.set_pod(pod);
  EXPECT_THAT(books.explain(pod.uid), HasSubstr("it fits on n1; a migration of a/small would make room"));
  EXPECT_EQ(refusal(books, pod, "n0"), "memory") << "nothing is moved";
  const kube::ObjectMeta huge = pod_object("huge", 20_GiB);
  books.set_pod(huge);
  EXPECT_THAT(books.explain(huge.uid), Not(HasSubstr("migration"))) << "no single one helps";
}

TEST(Books, shares_are_weights_under_native_burst) {
  Books books(Strategy::binpack);
  kube::NodeDevices devices = a10_devices(0, 1);
  devices.policy.effective = Policy::native_burst_share;
  devices.best_effort = kube::BestEffort::refuse;
  books.set_node(node_object("n0", devices));
  for (int i = 0; i < 3; ++i) {
    const auto slices = place_pod(books, pod_object("p" + std::to_string(i), 1_GiB, 6000), "n0");
    EXPECT_EQ(slices.containers.at("c").parts.front().share, Share{6000});
    EXPECT_EQ(slices.containers.at("c").policy, Policy::native_burst_share);
  }
  EXPECT_EQ(refusal(books, pod_object("without-a-share", 1_GiB), "n0"), "");
}

TEST(Books, whole_devices_and_shared_ones_exclude_each_other) {
  Books books = books_with(1, 2);
  kube::PodRequest request{.dialect = "carve"};
  request.containers["c"].exclusive = true;
  place_pod(books, pod_object("shared", 1_GiB), "n0");
  const auto slices = place_pod(books, pod_object("whole", request), "n0");
  EXPECT_THAT(slices.containers.at("c").parts,
              ElementsAre(kube::PlacedPart{device_uuid(0, 1), 22731_MiB, whole_device}));
  EXPECT_EQ(refusal(books, pod_object("whole-2", request), "n0"), "shared");
  EXPECT_THAT(books.explain("uid-of-whole-2"),
              HasSubstr("device 0: 1 slice on it, and the request is exclusive; "
                        "device 1: an exclusive slice holds the device"));
}

// The largest is placed first; each has its own slice.
TEST(Books, containers_of_a_pod_fit_together_or_not_at_all) {
  Books books = books_with(1, 2);
  kube::PodRequest request{.dialect = "carve"};
  request.containers["small"] = {.memory = (4_GiB).count};
  request.containers["large"] = {.memory = (20_GiB).count};
  request.containers["wide"] = {.memory = (2_GiB).count, .devices = 2};
  const auto slices = place_pod(books, pod_object("p", request), "n0");
  ASSERT_EQ(slices.containers.size(), 3u);
  EXPECT_EQ(slices.containers.at("wide").parts.size(), 2u);
  EXPECT_NE(slices.containers.at("small").parts.front().device,
            slices.containers.at("large").parts.front().device);
  request.containers.erase("wide");
  Books two = books_with(1, 1);
  EXPECT_EQ(refusal(two, pod_object("p", request), "n0"), "the containers together");
}

TEST(Books, a_request_may_name_devices) {
  Books books = books_with(1, 3);
  kube::PodRequest request{.dialect = "carve"};
  request.containers["c"] = {.memory = (16_GiB).count};
  request.containers["c"].device_uuids = {text(device_uuid(0, 1)), text(device_uuid(0, 2))};
  EXPECT_EQ(place_pod(books, pod_object("p", request), "n0").containers.at("c").parts.front().device,
            device_uuid(0, 1));
  EXPECT_EQ(place_pod(books, pod_object("q", request), "n0").containers.at("c").parts.front().device,
            device_uuid(0, 2));
  EXPECT_EQ(refusal(books, pod_object("r", request), "n0"), "other device");
  request.containers["c"].device_uuids = {"what is no UUID"};
  EXPECT_EQ(refusal(books, pod_object("s", request), "n0"), "other device");
}

TEST(Books, the_strategies_of_pod_and_node_choose_the_device) {
  Books books = books_with(1, 2);
  kube::NodeDevices spread = a10_devices(1, 2);
  spread.placement = Strategy::spread;
  books.set_node(node_object("spread", spread));
  const auto device_of = [&](const char* name, const char* node, std::optional<Strategy> strategy = {}) {
    kube::PodRequest request{.dialect = "carve"};
    request.containers["c"] = {.memory = (1_GiB).count};
    request.containers["c"].strategy = strategy;
    return place_pod(books, pod_object(name, request), node)
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

TEST(Books, one_node_has_the_highest_score) {
  Books books = books_with(3, 1);
  place_pod(books, pod_object("standing", 8_GiB), "n1");
  const kube::ObjectMeta pod = pod_object("p", 4_GiB);
  books.set_pod(pod);
  const auto scores = books.prioritize(pod.uid, Names{"n0", "n1", "n2", "other"});
  EXPECT_EQ(scores[1], 10) << "binpack fills it";
  EXPECT_LT(scores[0], 10);
  EXPECT_EQ(scores[3], 0);
  EXPECT_EQ(books.prioritize(pod.uid, Names{"n2"}).front(), 10);
}

// What happens between the reservation and the object that shows it.
TEST(Books, a_reservation_stays_until_it_is_known_what_became_of_it) {
  Books books = books_with(2, 1);
  const kube::ObjectMeta pod = pod_object("p", 20_GiB), other = pod_object("q", 20_GiB);
  ASSERT_TRUE(books.know_pod(pod));
  ASSERT_TRUE(books.know_pod(other));
  const auto first = books.reserve(pod.uid, "n0");
  ASSERT_TRUE(first) << first.error();
  EXPECT_THAT(books.unconfirmed(), ElementsAre(pod.uid));
  EXPECT_EQ(*books.reserve(pod.uid, "n0"), *first) << "the same question again";
  EXPECT_THAT(books.reserve(pod.uid, "n1").error(), HasSubstr("is being bound to node n0"));
  EXPECT_THAT(books.filter(pod.uid, Names{"n0", "n1"}), ElementsAre("", "bound to another node"));
  EXPECT_THAT(books.reserve(other.uid, "n0").error(), HasSubstr("does not fit on node n0 any more: memory"));
  books.replace_pods({{other.uid, other}});
  EXPECT_THAT(books.unconfirmed(), ElementsAre(pod.uid)) << "the list may be older than the pod";
  books.set_pod(pod);
  EXPECT_THAT(books.unconfirmed(), ElementsAre(pod.uid)) << "seen as it was before the binding";

  books.release(pod.uid);
  EXPECT_TRUE(books.reserve(other.uid, "n0"));
  books.set_pod(bound(other, *books.reserve(other.uid, "n0")));
  EXPECT_THAT(books.unconfirmed(), IsEmpty());
  books.release(other.uid);
  EXPECT_EQ(books.devices("n0").front().memory, 20_GiB) << "what an object confirms is not released";
}

TEST(Books, a_node_that_is_gone_keeps_the_books_of_its_pods) {
  Books books = books_with(1, 1);
  const kube::ObjectMeta pod = pod_object("p", 4_GiB);
  const auto slices = place_pod(books, pod, "n0");
  books.remove_node("n0");
  EXPECT_EQ(refusal(books, pod_object("q", 1_GiB), "n0"), "no agent");
  books.set_node(node_object("n0", a10_devices(0, 1)));
  EXPECT_EQ(books.devices("n0").front().memory, 4_GiB);
  books.remove_node("n0");
  books.remove_pod(pod.uid);
  EXPECT_THAT(books.explain("uid-of-q"), HasSubstr("0/0 nodes")) << "its last pod took it along";
}

TEST(Books, pods_may_come_before_their_node) {
  Books earlier = books_with(1, 2), later(Strategy::binpack);
  const kube::ObjectMeta pod = pod_object("p", 4_GiB, 3000);
  const auto slices = place_pod(earlier, pod, "n0");
  later.set_pod(bound(pod, slices));
  later.set_node(node_object("n0", a10_devices(0, 2)));
  EXPECT_EQ(later.devices("n0"), earlier.devices("n0"));
}

TEST(Books, a_node_that_cannot_be_read_serves_nothing_new) {
  Books books = books_with(1, 1);
  const auto slices = place_pod(books, pod_object("p", 4_GiB), "n0");
  kube::ObjectMeta damaged = node_object("n0", a10_devices(0, 1));
  damaged.annotations[kube::devices_annotation] = "{";
  books.set_node(damaged);
  EXPECT_EQ(refusal(books, pod_object("q", 1_GiB), "n0"), "no agent");
  EXPECT_THAT(books.problems().at("node n0"), HasSubstr("carve.dev/devices"));
  books.set_node(node_object("n0", a10_devices(0, 1)));
  EXPECT_THAT(books.problems(), IsEmpty());
  EXPECT_EQ(books.devices("n0").front().memory, 4_GiB);
}

TEST(Books, slices_that_cannot_be_read_stay_booked_as_they_were) {
  Books books = books_with(1, 1);
  const kube::ObjectMeta pod = pod_object("p", 4_GiB);
  place_pod(books, pod, "n0");
  kube::ObjectMeta damaged = pod;
  damaged.annotations[kube::slices_annotation] = R"({"v":9})";
  books.set_pod(damaged);
  EXPECT_EQ(books.devices("n0").front().memory, 4_GiB);
  EXPECT_THAT(books.problems().at("pod a/p"), HasSubstr("carve.dev/slices version 9"));
}

TEST(Books, an_exhausted_device_stays_within_the_engines_numbers) {
  Books books = books_with(1, 1);
  place_pod(books, pod_object("p", 20_GiB, 9000), "n0");
  books.set_node(node_object("n0", a10_devices(0, 1, 10_GiB)));
  EXPECT_EQ(refusal(books, pod_object("q", 1_GiB), "n0"), "memory");
  EXPECT_EQ(books.devices("n0").front().memory, 20_GiB);
}

TEST(Books, why_a_pod_waits_is_one_sentence) {
  Books books = books_with(3, 1);
  for (int i = 0; i < 3; ++i)
    place_pod(books, pod_object("p" + std::to_string(i), Bytes{(20_GiB).count - i * (1_GiB).count}),
              "n" + std::to_string(i));
  const kube::ObjectMeta pod = pod_object("q", 8_GiB);
  books.set_pod(pod);
  EXPECT_EQ(books.explain(pod.uid),
            "0/3 nodes can serve: 3 memory. Nearest n2: device 0: 8 GiB needed, 4299 MiB free. With 3893 MiB "
            "less it fits on n2");
}

TEST(Books, the_engine_is_made_anew_when_many_nodes_have_left) {
  Books books = books_with(2, 1);
  const kube::ObjectMeta pod = pod_object("p", 4_GiB);
  place_pod(books, pod, "n0");
  for (unsigned i = 0; i < 200; ++i) {
    const std::string name = "spot-" + std::to_string(i);
    books.set_node(node_object(name, a10_devices(100 + i, 1)));
    books.remove_node(name);
  }
  EXPECT_GT(books.rebuilt(), 1u);
  EXPECT_EQ(books.devices("n0").front().memory, 4_GiB);
  EXPECT_EQ(refusal(books, pod_object("q", 20_GiB), "n0"), "memory");
  EXPECT_EQ(refusal(books, pod_object("q", 20_GiB), "n1"), "");
}

TEST(Books, views_show_models_units_and_what_is_granted_twice) {
  Books books(Strategy::binpack);
  books.set_node(node_object("n0", a10_devices(0, 1)));
  kube::PodRequest request{.dialect = "ack"};
  request.containers["c"] = {.memory = (16_GiB).count, .unit = (1_GiB).count, .units = 16};
  books.set_pod(pod_object("p", request));
  EXPECT_THAT(books.models(), ::testing::ElementsAre("NVIDIA A10"));
  EXPECT_THAT(books.pods_in_units()[(1_GiB).count], ::testing::ElementsAre("a/p"));
  const auto slices = books.reserve("uid-of-p", "n0");
  ASSERT_TRUE(slices);
  EXPECT_TRUE(books.overcommitted().empty());
  books.set_pod(bound(pod_object("q", request), *slices));
  ASSERT_EQ(books.overcommitted().size(), 1u);
  EXPECT_THAT(text(books.overcommitted()[0]), HasSubstr("Pods: a/p "));
  EXPECT_EQ(books.overcommitted()[0].pods.size(), 2u);
  books.remove_pod("uid-of-q");
  EXPECT_TRUE(books.overcommitted().empty());
  books.set_node(node_object("n0", a10_devices(0, 1, 8_GiB)));
  EXPECT_EQ(books.overcommitted().size(), 1u) << "the device shrank";
  books.remove_node("n0");
  EXPECT_TRUE(books.overcommitted().empty()) << "a node without an agent has no devices";
  EXPECT_THAT(books.models(), IsEmpty());
}

TEST(Books, an_older_state_that_arrives_late_changes_nothing) {
  Books books(Strategy::binpack);
  books.set_node(node_object("n0", a10_devices(0, 1)));
  const auto at = [](kube::ObjectMeta pod, const char* version) {
    pod.resource_version = version;
    return pod;
  };
  books.set_pod(at(pod_object("p", 16_GiB), "9"));
  const auto slices = books.reserve("uid-of-p", "n0");
  ASSERT_TRUE(slices);
  books.set_pod(at(bound(pod_object("p", 16_GiB), *slices), "20"));  // Read by the binder.
  books.set_pod(at(pod_object("p", 16_GiB), "15"));                  // Of the watch, from before the binding.
  EXPECT_EQ(books.devices("n0").front().memory, 16_GiB);
  books.set_pod(at(pod_object("p", 16_GiB), "21"));
  EXPECT_EQ(books.devices("n0").front().memory, Bytes{});
}

// A list that is read anew has 50,000 pods as they were; what is read again takes 13 us each.
TEST(Books, a_version_that_was_read_is_not_read_again) {
  Books books(Strategy::binpack);
  const auto at = [](kube::ObjectMeta object, const char* version) {
    object.resource_version = version;
    return object;
  };
  const auto damaged = [](kube::ObjectMeta object, const char* annotation) {
    object.annotations[annotation] = "{";
    return object;
  };
  const kube::ObjectMeta node = at(node_object("n0", a10_devices(0, 1)), "5"),
                         pod = at(pod_object("p", 4_GiB), "9");
  books.set_node(node);
  books.set_pod(pod);
  const kube::ObjectMeta bad_node = damaged(node, kube::devices_annotation);
  const kube::ObjectMeta bad_pod = damaged(pod, kube::slices_annotation);
  books.replace_nodes({{node.uid, bad_node}});
  books.replace_pods({{pod.uid, bad_pod}});
  EXPECT_THAT(books.problems(), IsEmpty());
  books.replace_nodes({{node.uid, at(bad_node, "6")}});
  books.replace_pods({{pod.uid, at(bad_pod, "10")}});
  EXPECT_EQ(books.problems().size(), 2u);

  books.remove_node("n0");
  books.set_node(node);
  EXPECT_EQ(refusal(books, pod_object("q", 1_GiB), "n0"), "") << "a node that was away is read";
}

TEST(Books, a_plan_empties_devices_and_moves_nothing) {
  Books books(Strategy::spread);
  for (unsigned n = 0; n < 2; ++n) books.set_node(node_object("n" + std::to_string(n), a10_devices(n, 2)));
  const std::pair<const char*, const char*> pods[] = {{"p", "n0"}, {"q", "n0"}, {"r", "n1"}};
  for (const auto& [name, node] : pods) {
    books.set_pod(pod_object(name, 4_GiB));
    const auto slices = books.reserve("uid-of-" + std::string(name), node);
    ASSERT_TRUE(slices) << slices.error();
    books.set_pod(bound(pod_object(name, 4_GiB), *slices));
  }
  const BooksPlan plan = books.plan_consolidation(2);
  EXPECT_EQ(plan.emptied.size(), 2u);
  EXPECT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moved, 8_GiB);
  for (const BooksPlan::Move& move : plan.moves) {
    EXPECT_EQ(move.memory, 4_GiB);
    EXPECT_THAT(move.pod, ::testing::StartsWith("a/"));
    EXPECT_EQ(move.from.size(), 1u);
  }
  EXPECT_EQ(books.devices("n0").front().memory, 4_GiB);
  EXPECT_TRUE(books.plan_consolidation(4).emptied.size() < 4u) << "the slices have to be on a device";
}

}  // namespace
}  // namespace carve::cluster
