#include <gmock/gmock.h>

#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/preemption.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

kubernetes::ObjectMeta pod_of_priority(const std::string& name, Bytes memory, std::optional<int32_t> priority,
                                       uint64_t created = 0) {
  kubernetes::PodRequest request{.dialect = "carve"};
  request.containers["c"].amounts.memory_bytes = memory.count;
  request.priority = priority;
  kubernetes::ObjectMeta out = pod_object(name, request);
  out.created = created;
  return out;
}

// A node with two devices of 22731 MiB, and pods that are placed on one of them.
struct PreemptionScenario {
  Cache cache{Strategy::binpack};

  PreemptionScenario() { cache.set_node(node_object("n0", a10_devices(0, 2))); }
  void put(unsigned device, kubernetes::ObjectMeta pod, bool is_deleting = false) {
    kubernetes::PodSlices slices{.node = "n0"};
    const auto request = kubernetes::read_request(pod.annotations.at(kubernetes::request_annotation));
    slices.containers["c"].parts = {
        {device_uuid(0, device), {*request->containers.at("c").amounts.memory_bytes}, {}}};
    pod.is_deleting = is_deleting;
    cache.set_pod(bound(std::move(pod), slices));
  }
  std::optional<std::vector<std::string>> victims(const std::vector<std::string>& given,
                                                  Bytes memory = 20_GiB, int32_t priority = 100) {
    const kubernetes::ObjectMeta pod = pod_of_priority("high", memory, priority);
    cache.remove_pod(pod.uid);  // A request never changes.
    cache.set_pod(pod);
    std::vector<std::string> uids;
    for (const std::string& name : given) uids.push_back("uid-of-" + name);
    auto out = complete_victims(cache, pod.uid, "n0", uids);
    if (out)
      for (std::string& uid : *out) uid = uid.substr(std::string("uid-of-").size());
    return out;
  }
  std::string refusal_of(const kubernetes::ObjectMeta& pod) {
    cache.set_pod(pod);
    return std::string(filter_nodes(cache, pod.uid, std::vector<std::string_view>{"n0"}).front());
  }
};

TEST(Preemption, completes_the_schedulers_victims_on_one_device) {
  PreemptionScenario s;
  s.put(0, pod_of_priority("a", 12_GiB, 0, 1));
  s.put(1, pod_of_priority("b", 12_GiB, 0, 2));
  s.put(0, pod_of_priority("c", 8_GiB, 0, 3));
  s.put(1, pod_of_priority("d", 8_GiB, 0, 4));
  EXPECT_THAT(s.victims({"c", "d"}), Optional(ElementsAre("c", "d", "b"))) << "the newer of two equal ones";
  EXPECT_THAT(s.victims({"a", "c"}), Optional(ElementsAre("a", "c"))) << "these two make enough room";
  EXPECT_EQ(device_uses(s.cache, "n0")[0].memory, 20_GiB) << "nothing has changed";
  EXPECT_FALSE(s.victims({"c", "d"}, 20_GiB, 0)) << "pods of equal priority stay";
  EXPECT_FALSE(s.victims({"c", "d"}, 23_GiB)) << "no device has that much";
}

TEST(Preemption, removes_the_lowest_priority_first_and_few_large_pods) {
  PreemptionScenario s;
  s.put(0, pod_of_priority("middle", 16_GiB, 50));
  s.put(0, pod_of_priority("one", 5_GiB, 50));
  s.put(1, pod_of_priority("low", 6_GiB, -5));
  s.put(1, pod_of_priority("lower", 6_GiB, -10));
  s.put(1, pod_of_priority("small", 2_GiB, -10));
  EXPECT_THAT(s.victims({}, 12_GiB), Optional(ElementsAre("lower"))) << "6 of 8 GiB are free without it";
  EXPECT_THAT(s.victims({}, 20_GiB), Optional(UnorderedElementsAre("lower", "low"))) << "2 GiB may stay";
}

TEST(Preemption, keeps_pods_that_may_not_be_removed) {
  PreemptionScenario s;
  s.put(0, pod_of_priority("unknown", 20_GiB, std::nullopt));
  s.put(1, pod_of_priority("equal", 20_GiB, 100));
  EXPECT_FALSE(s.victims({}, 12_GiB));
  s.put(1, pod_of_priority("leaving", 20_GiB, 500), true);
  PreemptionScenario t;
  t.put(0, pod_of_priority("unknown", 20_GiB, std::nullopt));
  t.put(1, pod_of_priority("leaving", 20_GiB, 500), true);
  EXPECT_THAT(t.victims({}, 12_GiB), Optional(IsEmpty())) << "it is being deleted";
  EXPECT_FALSE(complete_victims(t.cache, "other", "n0", {}));
  EXPECT_FALSE(complete_victims(t.cache, "uid-of-high", "n9", {}));
}

TEST(Preemption, selects_nodes_where_lower_priorities_hold_enough) {
  Cache cache{Strategy::binpack};
  const auto put = [&](unsigned node, kubernetes::ObjectMeta pod, bool is_deleting = false) {
    kubernetes::PodSlices slices{.node = "n" + std::to_string(node)};
    slices.containers["c"].parts = {{device_uuid(node, 0), 20_GiB, {}}};
    pod.is_deleting = is_deleting;
    cache.set_pod(bound(std::move(pod), slices));
  };
  for (unsigned n = 0; n < 5; ++n) cache.set_node(node_object("n" + std::to_string(n), a10_devices(n, 1)));
  put(0, pod_of_priority("low", 20_GiB, 0));
  put(1, pod_of_priority("equal", 20_GiB, 100));
  put(2, pod_of_priority("unknown", 20_GiB, std::nullopt));
  put(3, pod_of_priority("leaving", 20_GiB, 0), true);
  put(4, pod_of_priority("also-low", 20_GiB, 99));
  const std::vector<std::string_view> nodes = {"n4", "n3", "n2", "n1", "n0", "n9"};
  const kubernetes::ObjectMeta high = pod_of_priority("high", 12_GiB, 100);
  const kubernetes::ObjectMeta huge = pod_of_priority("huge", 23_GiB, 100);
  cache.set_pod(high);
  cache.set_pod(huge);
  EXPECT_THAT(preemptible_nodes(cache, high.uid, nodes), ElementsAre(0, 4))
      << "n3 has room without a preemption";
  EXPECT_THAT(preemptible_nodes(cache, huge.uid, nodes), IsEmpty()) << "no device has that much";
  EXPECT_THAT(preemptible_nodes(cache, "other", nodes), IsEmpty());
  EXPECT_EQ(device_uses(cache, "n0").front().memory, 20_GiB) << "nothing has changed";
}

TEST(Preemption, keeps_the_room_from_pods_of_lower_priority) {
  PreemptionScenario s;
  s.put(0, pod_of_priority("stays", 12_GiB, 0));
  s.put(1, pod_of_priority("leaving", 12_GiB, 0), true);
  const kubernetes::ObjectMeta high = pod_of_priority("high", 20_GiB, 100);
  s.cache.nominate(high, "n0");
  EXPECT_NE(s.refusal_of(pod_of_priority("large", 12_GiB, 0)), "");
  s.cache.remove_pod("uid-of-leaving");
  EXPECT_EQ(s.refusal_of(pod_of_priority("thief", 12_GiB, 0)), "kept for a preempting pod");
  EXPECT_EQ(s.refusal_of(pod_of_priority("unknown", 12_GiB, std::nullopt)), "kept for a preempting pod");
  EXPECT_EQ(s.refusal_of(pod_of_priority("beside", 10_GiB, 0)), "") << "device 0 has room";
  const auto beside = reserve_devices(s.cache, "uid-of-beside", "n0");
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->containers.at("c").parts.front().device, device_uuid(0, 0))
      << "not on the device whose room is kept";
  EXPECT_EQ(s.refusal_of(pod_of_priority("equal", 12_GiB, 100)), "");
  EXPECT_FALSE(reserve_devices(s.cache, "uid-of-thief", "n0"));
  EXPECT_EQ(device_uses(s.cache, "n0")[1].memory, Bytes{}) << "nothing is reserved";
  const auto slices = reserve_devices(s.cache, high.uid, "n0");
  ASSERT_TRUE(slices) << slices.error();
  s.cache.set_pod(bound(high, *slices));
  EXPECT_EQ(s.refusal_of(pod_of_priority("thief", 12_GiB, 0)), "memory");
}

TEST(Preemption, a_forgotten_nomination_keeps_no_room) {
  PreemptionScenario s;
  const kubernetes::ObjectMeta high = pod_of_priority("high", 20_GiB, 100);
  s.put(0, pod_of_priority("stays", 12_GiB, 0));
  s.cache.nominate(high, "n0");
  s.cache.nominate(high, "n7");
  EXPECT_EQ(s.refusal_of(pod_of_priority("p", 20_GiB, 0)), "") << "it waits for another node now";
  s.cache.nominate(high, "n0");
  EXPECT_EQ(s.refusal_of(pod_of_priority("p", 20_GiB, 0)), "kept for a preempting pod");
  s.cache.forget_nomination(high.uid);
  EXPECT_EQ(s.refusal_of(pod_of_priority("p", 20_GiB, 0)), "");
  s.cache.nominate(high, "n0");
  s.cache.remove_pod(high.uid);
  EXPECT_EQ(s.refusal_of(pod_of_priority("p", 20_GiB, 0)), "");
  s.cache.nominate({}, "n0");
  s.cache.forget_nomination("other");
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
