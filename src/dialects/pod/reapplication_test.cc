#include "dialects/pod/reapplication.h"

#include <gmock/gmock.h>

#include "dialects/pod/admission.h"

namespace carve::dialects {
namespace {

using api::Json;
using ::testing::HasSubstr;

Json manifest(const Json& limits) {
  return {{"metadata", {{"name", "p"}}},
          {"spec", {{"containers", {{{"name", "c"}, {"resources", {{"limits", limits}}}}}}}}};
}

// Returns the pod as the API server stores it after the manifest was applied.
Json admitted(const Json& pod) {
  const auto out = admit(pod, {.unit = MemoryUnit::gib});
  EXPECT_TRUE(out) << out.error().front().message;
  return out->pod;
}

// Adds the manifest's fields to the existing pod, as `kubectl apply` does.
Json applied(Json pod, const Json& manifest) {
  pod.merge_patch(manifest["metadata"].is_null() ? Json::object() : Json{{"metadata", manifest["metadata"]}});
  for (const auto& [key, value] : manifest["spec"]["containers"][0]["resources"]["limits"].items())
    pod["spec"]["containers"][0]["resources"]["limits"][key] = value;
  for (const char* key : {"tolerations", "schedulerName"})
    if (manifest["spec"].contains(key)) pod["spec"][key] = manifest["spec"][key];
  return pod;
}

TEST(Reapplication, applying_a_manifest_again_changes_nothing) {
  for (const Json& limits :
       {Json{{"aliyun.com/gpu-mem", "2"}}, Json{{"carve.dev/devices", 1}},
        Json{{"carve.dev/memory", "4Gi"}, {"carve.dev/devices", "2"}},
        Json{{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1024"}}, Json{{"carve.dev/memory", "4Gi"}}}) {
    Json pod = manifest(limits);
    pod["spec"]["tolerations"] = {{{"key", "a"}, {"operator", "Exists"}}};
    pod["spec"]["schedulerName"] = "default-scheduler";
    const Json before = admitted(pod);
    const auto again = reapplied(applied(before, pod), before);
    ASSERT_TRUE(again) << again.error().front().message;
    EXPECT_EQ(*again, before) << limits;
  }
}

TEST(Reapplication, rejects_other_amounts_with_the_fix) {
  const Json pod = manifest({{"aliyun.com/gpu-mem", "2"}}), before = admitted(pod);
  const auto again = reapplied(applied(before, manifest({{"aliyun.com/gpu-mem", 4}})), before);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().front().message,
              HasSubstr("aliyun.com/gpu-mem of a pod cannot be changed (2, now 4); delete the pod"));
}

TEST(Reapplication, keeps_earlier_tolerations_and_adds_new_ones) {
  Json pod = manifest({{"aliyun.com/gpu-mem", "2"}});
  const Json before = admitted(pod);
  pod["spec"]["tolerations"] = {{{"key", "b"}, {"operator", "Exists"}}};
  const auto again = reapplied(applied(before, pod), before);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)["spec"]["tolerations"].size(), 2u);
}

TEST(Reapplication, returns_any_other_pod_unchanged) {
  const Json pod = manifest({{"aliyun.com/gpu-mem", "2"}});
  for (const Json& before : {pod, Json(), Json::object(), Json("text")})
    EXPECT_EQ(*reapplied(pod, before), pod);
  EXPECT_EQ(*reapplied(Json(5), admitted(pod)), Json(5));
}

}  // namespace
}  // namespace carve::dialects
