#include "kubernetes/cli/set.h"

#include <gmock/gmock.h>

#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using namespace coordinator::testing;
using ::testing::HasSubstr;

std::string json_of(const kubernetes::ObjectMeta& pod) {
  return api::Json{
      {"metadata", {{"name", pod.name}, {"namespace", "a"}, {"uid", "u"}, {"annotations", pod.annotations}}}}
      .dump();
}

kubernetes::ObjectMeta running_pod(const std::vector<std::string>& containers) {
  kubernetes::PodSlices slices{.node = "n0"};
  for (const std::string& name : containers) slices.containers[name].parts = {{device_uuid(0, 0), 4_GiB, {}}};
  return bound(pod_object("p", 4_GiB), slices);
}

TEST(Set, writes_a_resize_as_a_patch_of_the_pod) {
  const auto pod = resized_pod(json_of(running_pod({"c"})), {.container = "", .memory = "6Gi"});
  ASSERT_TRUE(pod) << pod.error();
  const std::string resize = api::Json::parse(pod->patch)["metadata"]["annotations"]["carve.dev/resize"];
  EXPECT_EQ(resize, R"({"v":1,"containers":{"c":{"memory":6442450944}}})");
  EXPECT_EQ(pod->after.containers.at("c").parts.front().memory, 6_GiB);
  EXPECT_EQ(resized_pod(json_of(running_pod({"c"})), {.container = "c", .memory = "4096Mi"})->patch, "");
}

TEST(Set, rejects_invalid_resize_requests_before_they_are_written) {
  const std::string one = json_of(running_pod({"c"})), two = json_of(running_pod({"c", "d"}));
  const std::tuple<std::string, SliceResize, const char*> rows[] = {
      {two, {"", "6Gi"}, "pod a/p has slices for c, d; select one with --container"},
      {two, {"e", "6Gi"}, "container e has no slice; use one of c, d"},
      {one, {"", "6"}, "6 bytes of memory requested; request whole MiB, such as 4Gi or 4096Mi"},
      {one, {"", "six"}, "--memory 'six' is not a size"},
      {json_of(pod_object("p", 4_GiB)), {"", "6Gi"}, "pod a/p is waiting for its slices"},
      {R"({"metadata":{"name":"p","namespace":"a","uid":"u"}})", {"", "6Gi"}, "pod a/p has no slice"},
      {"{", {"", "6Gi"}, "the pod: "}};
  for (const auto& [json, resize, message] : rows) {
    const auto pod = resized_pod(json, resize);
    ASSERT_FALSE(pod) << message;
    EXPECT_THAT(pod.error(), HasSubstr(message));
  }
}

TEST(Set, reports_the_outcome_of_the_resize) {
  kubernetes::ObjectMeta pod = running_pod({"c"});
  using State = ResizeProgress::State;
  EXPECT_EQ(resize_progress(json_of(pod))->state, State::ended);
  kubernetes::PodSlices slices = *kubernetes::read_slices(pod.annotations[kubernetes::slices_annotation]);
  slices.containers["c"].memory_before = (8_GiB).count;
  EXPECT_EQ(resize_progress(json_of(bound(pod, slices)))->state, State::waits_for_node);
  pod.annotations["carve.dev/resize"] = "{}";
  EXPECT_EQ(resize_progress(json_of(pod))->state, State::waits_for_coordinator);
  EXPECT_FALSE(resize_progress("{"));
  const auto notes = refusals_in(
      R"({"items":[{"metadata":{"name":"e1"},"reason":"CarveRefused","action":"ChangeSlice","note":"no room"},)"
      R"({"metadata":{"name":"e2"},"reason":"CarveRefused","action":"StartContainer","note":"x"},{"note":5}]})");
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_EQ(notes->front().note, "no room");
  EXPECT_FALSE(refusals_in("[1"));
}

}  // namespace
}  // namespace carve::kubernetes::cli
