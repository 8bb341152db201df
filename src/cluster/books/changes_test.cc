#include <gmock/gmock.h>

#include "cluster/books/books.h"
#include "cluster/books/wished_slices.h"
#include "cluster/snapshot/testing/cluster_objects.h"

namespace carve::cluster {
namespace {

using namespace cluster::testing;
using ::testing::HasSubstr;

kube::PodWish wish_of(Bytes memory, const std::string& container = "c") {
  kube::PodWish out;
  out.containers[container].memory = memory.count;
  return out;
}

// A node of two devices of 22731 MiB; a pod of 4 GiB and one of 10 GiB on the first of them.
struct ChangeScenario {
  Books books{Strategy::binpack};
  kube::ObjectMeta pod = pod_object("p", 4_GiB);

  ChangeScenario() {
    books.set_node(node_object("n0", a10_devices(0, 2)));
    for (kube::ObjectMeta each : {pod, pod_object("other", 10_GiB)}) {
      books.set_pod(each);
      books.set_pod(bound(each, *books.reserve(each.uid, "n0")));
    }
    EXPECT_EQ(booked_now(), 14_GiB);
  }
  Bytes booked_now() const { return books.devices("n0").front().memory; }
};

TEST(Changes, a_wish_is_divided_over_the_devices_of_the_slice) {
  kube::PodSlices slices{.node = "n0"};
  slices.containers["c"].parts = {{device_uuid(0, 0), 4_GiB, {}}, {device_uuid(0, 1), 4_GiB, {}}};
  slices.containers["c"].unit = (1_GiB).count;
  slices.containers["c"].units = 8;
  slices.containers["whole"].parts = {{device_uuid(0, 2), 22731_MiB, {}}};
  slices.containers["whole"].exclusive = true;
  const auto more = wished_slices(slices, wish_of(10_GiB));
  ASSERT_TRUE(more) << more.error();
  EXPECT_EQ(more->containers.at("c").parts[1].memory, 5_GiB);
  EXPECT_EQ(more->containers.at("c").units, 10u);
  EXPECT_EQ(difference(slices, *more), "container c: 10 GiB in place of 8 GiB");
  EXPECT_FALSE(wished_slices(slices, wish_of(10242_MiB))->containers.at("c").units) << "no whole unit";
  EXPECT_EQ(larger_of(slices, *more).containers.at("c").parts, more->containers.at("c").parts);
  EXPECT_EQ(larger_of(*more, slices), *more);
  const std::pair<kube::PodWish, const char*> refused[] = {
      {wish_of({}), "container c: a memory of 0 bytes does not divide equally over 2 devices"},
      {wish_of(10241_MiB), "ask for a multiple of 2Mi"},
      {wish_of({UINT64_MAX}), "at most 1024 TiB"},
      {wish_of(4_GiB, "x"), "container x has no slice; name one of c, whole"},
      {wish_of(4_GiB, "whole"), "container whole has whole devices"},
      {{}, "names no container"}};
  for (const auto& [wish, sentence] : refused) {
    const auto made = wished_slices(slices, wish);
    ASSERT_FALSE(made) << sentence;
    EXPECT_THAT(made.error(), HasSubstr(sentence));
  }
}

TEST(Changes, the_larger_amount_is_booked_until_the_outcome_is_known) {
  ChangeScenario s;
  const kube::ObjectMeta before = bound(s.pod, *s.books.begin_change(s.pod.uid, wish_of(4_GiB)));
  s.books.set_pod(before);
  const auto grown = s.books.begin_change(s.pod.uid, wish_of(8_GiB));
  ASSERT_TRUE(grown) << grown.error();
  EXPECT_EQ(s.booked_now(), 18_GiB);
  s.books.set_pod(before);
  EXPECT_EQ(s.booked_now(), 18_GiB) << "an event of the old pod says nothing of the write";
  EXPECT_FALSE(s.books.begin_change(s.pod.uid, wish_of(9_GiB)));
  s.books.set_pod(bound(s.pod, *grown));
  EXPECT_EQ(s.booked_now(), 18_GiB);
  const auto shrunk = s.books.begin_change(s.pod.uid, wish_of(2_GiB));
  EXPECT_EQ(s.booked_now(), 18_GiB) << "less is free when it is written";
  s.books.set_pod(bound(s.pod, *shrunk));
  EXPECT_EQ(s.booked_now(), 12_GiB);
  ASSERT_TRUE(s.books.begin_change(s.pod.uid, wish_of(6_GiB)));
  s.books.end_change(s.pod.uid);
  EXPECT_EQ(s.booked_now(), 12_GiB) << "a refused write";
  ASSERT_TRUE(s.books.begin_change(s.pod.uid, wish_of(6_GiB)));
  s.books.remove_pod(s.pod.uid);
  EXPECT_EQ(s.booked_now(), 10_GiB);
}

TEST(Changes, a_device_without_room_is_named) {
  ChangeScenario s;
  const auto full = s.books.begin_change(s.pod.uid, wish_of(16_GiB));
  ASSERT_FALSE(full);
  EXPECT_EQ(
      full.error(),
      "device 0 of node n0: 16 GiB asked for, and 10 GiB of 22731 MiB are granted to other pods; at most "
      "12491 MiB fits");
  EXPECT_EQ(s.booked_now(), 14_GiB);
  EXPECT_TRUE(s.books.begin_change(s.pod.uid, wish_of(12491_MiB)));
  s.books.set_pod(pod_object("waiting", 4_GiB));
  EXPECT_THAT(s.books.begin_change("uid-of-waiting", wish_of(1_GiB)).error(), HasSubstr("has no slices yet"));
  EXPECT_FALSE(s.books.begin_change("other uid", wish_of(1_GiB)));
  s.books.remove_node("n0");
  EXPECT_THAT(s.books.begin_change("uid-of-other", wish_of(1_GiB)).error(),
              HasSubstr("does not describe device"));
}

}  // namespace
}  // namespace carve::cluster
