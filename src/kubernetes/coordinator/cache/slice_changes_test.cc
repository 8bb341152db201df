#include <gmock/gmock.h>

#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/resized_slices.h"
#include "kubernetes/coordinator/cache/slice_changes.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using ::testing::HasSubstr;

kubernetes::PodResize resize_of(Bytes memory, const std::string& container = "c") {
  kubernetes::PodResize out;
  out.containers[container].memory = memory.count;
  return out;
}

// A node with two devices of 22731 MiB, and pods of 4 GiB and 10 GiB on the first device.
struct ChangeScenario {
  Cache cache{Strategy::binpack};
  kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);

  ChangeScenario() {
    cache.set_node(node_object("n0", a10_devices(0, 2)));
    for (kubernetes::ObjectMeta each : {pod, pod_object("other", 10_GiB)}) {
      cache.set_pod(each);
      cache.set_pod(bound(each, *reserve_devices(cache, each.uid, "n0")));
    }
    EXPECT_EQ(reserved_now(), 14_GiB);
  }
  Bytes reserved_now() const { return device_uses(cache, "n0").front().memory; }
};

TEST(Changes, a_resize_is_divided_over_the_devices_of_the_slice) {
  kubernetes::PodSlices slices{.node = "n0"};
  slices.containers["c"].parts = {{device_uuid(0, 0), 4_GiB, {}}, {device_uuid(0, 1), 4_GiB, {}}};
  slices.containers["c"].unit = (1_GiB).count;
  slices.containers["c"].units = 8;
  slices.containers["whole"].parts = {{device_uuid(0, 2), 22731_MiB, {}}};
  slices.containers["whole"].exclusive = true;
  slices.containers["uneven"].parts = {{device_uuid(0, 0), 1_GiB, {}}, {device_uuid(0, 1), 2_GiB, {}}};
  const auto more = resized_slices(slices, resize_of(10_GiB));
  ASSERT_TRUE(more) << more.error();
  EXPECT_EQ(more->containers.at("c").parts[1].memory, 5_GiB);
  EXPECT_EQ(more->containers.at("c").memory_before, (4_GiB).count);
  EXPECT_EQ(more->containers.at("c").units, 8u) << "units change once the node has carried out the change";
  EXPECT_EQ(changed_slices(*more, {}).containers.at("c").units, 10u);
  EXPECT_EQ(changed_slices(*more, {"c"}), slices);
  EXPECT_EQ(difference(slices, *more), "container c: 10 GiB instead of 8 GiB");
  EXPECT_FALSE(changed_slices(*resized_slices(slices, resize_of(10242_MiB)), {}).containers.at("c").units)
      << "not a whole number of units";
  EXPECT_EQ(*resized_slices(slices, resize_of(8_GiB)), slices);
  EXPECT_EQ(larger_of(slices, *more).containers.at("c").parts, more->containers.at("c").parts);
  EXPECT_EQ(larger_of(*more, slices), *more);
  const std::pair<kubernetes::PodResize, const char*> refused[] = {
      {resize_of({}), "container c: 0 bytes of memory for 2 devices must be a positive"},
      {resize_of(10241_MiB), "must be a positive multiple of 2Mi"},
      {resize_of({UINT64_MAX}), "at most 1024 TiB"},
      {resize_of(4_GiB, "x"), "container x has no slice; use one of c, uneven, whole"},
      {resize_of(4_GiB, "whole"), "container whole has whole devices"},
      {{}, "lists no container"},
      {resize_of(4_GiB, "uneven"), "container uneven has different amounts on its devices"}};
  for (const auto& [resize, message] : refused) {
    const auto made = resized_slices(slices, resize);
    ASSERT_FALSE(made) << message;
    EXPECT_THAT(made.error(), HasSubstr(message));
  }
}

TEST(Changes, keep_the_larger_amount_reserved_until_the_outcome_is_known) {
  ChangeScenario s;
  const auto settled = [&](const kubernetes::PodSlices& slices) {
    return bound(s.pod, changed_slices(slices, {}));
  };
  const kubernetes::ObjectMeta before = settled(*reserve_change(s.cache, s.pod.uid, resize_of(4_GiB)));
  s.cache.set_pod(before);
  const auto grown = reserve_change(s.cache, s.pod.uid, resize_of(8_GiB));
  ASSERT_TRUE(grown) << grown.error();
  EXPECT_EQ(s.reserved_now(), 18_GiB);
  s.cache.set_pod(before);
  EXPECT_EQ(s.reserved_now(), 18_GiB) << "an event of the old pod does not show the result of the write";
  EXPECT_FALSE(reserve_change(s.cache, s.pod.uid, resize_of(9_GiB)));
  s.cache.set_pod(bound(s.pod, *grown));
  EXPECT_EQ(s.reserved_now(), 18_GiB);
  EXPECT_THAT(reserve_change(s.cache, s.pod.uid, resize_of(9_GiB)).error(),
              HasSubstr("node n0 has not carried out the previous change"));
  s.cache.set_pod(settled(*grown));
  const auto shrunk = reserve_change(s.cache, s.pod.uid, resize_of(2_GiB));
  EXPECT_EQ(s.reserved_now(), 18_GiB) << "memory is freed only when the change is written";
  s.cache.set_pod(bound(s.pod, *shrunk));
  EXPECT_EQ(s.reserved_now(), 18_GiB) << "the node may reject it";
  s.cache.set_pod(settled(*shrunk));
  EXPECT_EQ(s.reserved_now(), 12_GiB);
  ASSERT_TRUE(reserve_change(s.cache, s.pod.uid, resize_of(6_GiB)));
  s.cache.end_change(s.pod.uid);
  EXPECT_EQ(s.reserved_now(), 12_GiB) << "the write was rejected";
  ASSERT_TRUE(reserve_change(s.cache, s.pod.uid, resize_of(6_GiB)));
  s.cache.remove_pod(s.pod.uid);
  EXPECT_EQ(s.reserved_now(), 10_GiB);
}

TEST(Changes, report_a_device_without_room) {
  ChangeScenario s;
  const auto full = reserve_change(s.cache, s.pod.uid, resize_of(16_GiB));
  ASSERT_FALSE(full);
  EXPECT_EQ(
      full.error(),
      "device 0 of node n0: 16 GiB requested, but 10 GiB of 22731 MiB are granted to other containers; at "
      "most 12491 MiB fits");
  EXPECT_EQ(s.reserved_now(), 14_GiB);
  EXPECT_TRUE(reserve_change(s.cache, s.pod.uid, resize_of(12491_MiB)));
  s.cache.set_pod(pod_object("waiting", 4_GiB));
  EXPECT_THAT(reserve_change(s.cache, "uid-of-waiting", resize_of(1_GiB)).error(),
              HasSubstr("has no slices yet"));
  EXPECT_FALSE(reserve_change(s.cache, "other uid", resize_of(1_GiB)));
  s.cache.remove_node("n0");
  EXPECT_THAT(reserve_change(s.cache, "uid-of-other", resize_of(1_GiB)).error(),
              HasSubstr("does not list device"));
}

TEST(Changes, count_the_other_containers_of_the_pod) {
  Cache cache{Strategy::binpack};
  cache.set_node(node_object("n0", a10_devices(0, 1)));
  kubernetes::PodSlices slices{.node = "n0"};
  slices.containers["a"].parts = slices.containers["b"].parts = {{device_uuid(0, 0), 1_GiB, {}}};
  cache.set_pod(bound(pod_object("p", 1_GiB), slices));
  EXPECT_EQ(reserve_change(cache, "uid-of-p", resize_of(64_GiB, "a")).error(),
            "device 0 of node n0: 64 GiB requested, but 1 GiB of 22731 MiB are granted to other containers; "
            "at most 21707 MiB fits");
  EXPECT_TRUE(reserve_change(cache, "uid-of-p", resize_of(21707_MiB, "a")));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
