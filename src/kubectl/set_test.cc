#include "kubectl/set.h"

#include <gmock/gmock.h>

#include "cluster/snapshot/testing/cluster_objects.h"
#include "wire/api/json_value.h"

namespace carve::kubectl {
namespace {

using namespace cluster::testing;
using ::testing::HasSubstr;

std::string json_of(const kube::ObjectMeta& pod) {
  return api::Json{
      {"metadata", {{"name", pod.name}, {"namespace", "a"}, {"uid", "u"}, {"annotations", pod.annotations}}}}
      .dump();
}

kube::ObjectMeta running_pod(const std::vector<std::string>& containers) {
  kube::PodSlices slices{.node = "n0"};
  for (const std::string& name : containers) slices.containers[name].parts = {{device_uuid(0, 0), 4_GiB, {}}};
  return bound(pod_object("p", 4_GiB), slices);
}

TEST(Set, a_wish_is_a_patch_of_the_pod) {
  const auto pod = wished_pod(json_of(running_pod({"c"})), {.container = "", .memory = "6Gi"});
  ASSERT_TRUE(pod) << pod.error();
  const std::string wish = api::Json::parse(pod->patch)["metadata"]["annotations"]["carve.dev/wish"];
  EXPECT_EQ(wish, R"({"v":1,"containers":{"c":{"memory":6442450944}}})");
  EXPECT_EQ(pod->after.containers.at("c").parts.front().memory, 6_GiB);
  EXPECT_EQ(wished_pod(json_of(running_pod({"c"})), {.container = "c", .memory = "4096Mi"})->patch, "");
}

TEST(Set, what_cannot_be_wished_is_refused_before_it_is_written) {
  const std::string one = json_of(running_pod({"c"})), two = json_of(running_pod({"c", "d"}));
  const std::tuple<std::string, SliceWish, const char*> rows[] = {
      {two, {"", "6Gi"}, "pod a/p has slices for c, d; name one with --container"},
      {two, {"e", "6Gi"}, "container e has no slice; name one of c, d"},
      {one, {"", "6"}, "a memory of 6 bytes; write whole MiB, such as 4Gi or 4096Mi"},
      {one, {"", "six"}, "--memory 'six' is not a size"},
      {json_of(pod_object("p", 4_GiB)), {"", "6Gi"}, "pod a/p waits for its slices"},
      {R"({"metadata":{"name":"p","namespace":"a","uid":"u"}})", {"", "6Gi"}, "pod a/p has no slice"},
      {"{", {"", "6Gi"}, "the pod: "}};
  for (const auto& [json, wish, sentence] : rows) {
    const auto pod = wished_pod(json, wish);
    ASSERT_FALSE(pod) << sentence;
    EXPECT_THAT(pod.error(), HasSubstr(sentence));
  }
}

TEST(Set, the_end_of_the_wish_is_the_answer) {
  kube::ObjectMeta pod = running_pod({"c"});
  EXPECT_TRUE(answered_wish(json_of(pod))->has_value());
  pod.annotations["carve.dev/wish"] = "{}";
  EXPECT_FALSE(answered_wish(json_of(pod))->has_value());
  EXPECT_FALSE(answered_wish("{"));
  const auto notes = refusals_in(
      R"({"items":[{"metadata":{"name":"e1"},"reason":"CarveRefused","action":"ChangeSlice","note":"no room"},)"
      R"({"metadata":{"name":"e2"},"reason":"CarveRefused","action":"StartContainer","note":"x"},{"note":5}]})");
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_EQ(notes->front().note, "no room");
  EXPECT_FALSE(refusals_in("[1"));
}

}  // namespace
}  // namespace carve::kubectl
