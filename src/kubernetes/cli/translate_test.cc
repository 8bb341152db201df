#include "kubernetes/cli/translate.h"

#include <gmock/gmock.h>

#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using testing::HasSubstr, testing::StartsWith;

TEST(Translate, writes_templates_with_the_translated_pod) {
  const auto translated = translate(R"(
kind: StatefulSet
spec:
  replicas: 2
  template: {spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 16}}}]}}
---
kind: Service
spec: {clusterIP: None}
)",
                                    {.unit = MemoryUnit::mib_128});
  ASSERT_TRUE(translated) << translated.error().front().message;
  ASSERT_EQ(translated->documents.size(), 2u);
  const auto set = api::parse(translated->documents[0]);
  EXPECT_EQ((*set)["spec"]["replicas"], 2);
  EXPECT_EQ((*set)["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["carve.dev/memory"],
            "2Gi");
  EXPECT_EQ(api::parse(translated->documents[1])->dump(),
            R"({"kind":"Service","spec":{"clusterIP":"None"}})");
}

TEST(Translate, reports_the_errors_of_all_documents) {
  const auto translated = translate(R"(
kind: Pod
spec: {containers: [{name: a, resources: {limits: {aliyun.com/gpu-mem: 0}}}]}
---
kind: Pod
metadata: {name: web}
spec: {containers: [{name: b, resources: {limits: {carve.dev/memory: 5}}}]}
---
kind: Pod
metadata: {name: other}
spec: {containers: [{name: b, resources: {limits: {carve.dev/memory: 5}}}]}
)",
                                    {});
  ASSERT_FALSE(translated);
  ASSERT_EQ(translated.error().size(), 3u);
  EXPECT_THAT(translated.error()[0].message, HasSubstr("aliyun.com/gpu-mem: 0"));
  EXPECT_THAT(translated.error()[1].message, StartsWith("web: container b: carve.dev/memory: 5"));
  EXPECT_THAT(translated.error()[2].message, StartsWith("other: container b: carve.dev/memory: 5"));
}

TEST(Translate, translates_pods_in_lists_and_cron_jobs) {
  const auto translated = translate(R"(
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 2}}}]}}}}}
---
kind: List
items:
- kind: Pod
  spec: {containers: [{name: c, resources: {limits: {carve.dev/memory: 4Gi}}}]}
- kind: PodList
  items: [{kind: Pod, spec: {containers: [{name: c, resources: {limits: {carve.dev/devices: 1}}}]}}]
- kind: Service
)",
                                    {.unit = MemoryUnit::gib});
  ASSERT_TRUE(translated) << translated.error().front().message;
  EXPECT_THAT(translated->documents[0], HasSubstr(R"("carve.dev/memory":"2Gi")"));
  EXPECT_THAT(translated->documents[1], HasSubstr(R"("carve.dev/memory":"4Gi")"));
  EXPECT_THAT(translated->documents[1], HasSubstr(R"("carve.dev/compute":"100")"));
  EXPECT_TRUE(translated->warnings.empty());
  EXPECT_FALSE(
      translate("kind: List\nitems: [{kind: Pod, spec: {containers: [{name: c, resources: {limits: "
                "{carve.dev/memory: 5}}}]}}]",
                {}));
}

TEST(Translate, warns_about_limits_in_an_unknown_kind) {
  const auto translated = translate(
      "kind: RayCluster\nspec: {headGroupSpec: {template: {spec: {containers: [{resources: {limits: "
      "{nvidia.com/gpumem: 5}}}]}}}}",
      {});
  ASSERT_TRUE(translated);
  ASSERT_EQ(translated->warnings.size(), 1u);
  EXPECT_THAT(translated->warnings[0],
              HasSubstr("a document has nvidia.com/gpumem, but its kind is unknown"));
}

TEST(Translate, returns_documents_without_pods_unchanged) {
  for (const char* text : {"kind: Deployment", "kind: 5", "a: 1", R"({"kind": "Job", "spec": 1})"}) {
    const auto translated = translate(text, {});
    ASSERT_TRUE(translated) << text;
    EXPECT_FALSE(translated->documents[0].find("null") != std::string::npos) << text;
  }
  EXPECT_FALSE(translate("kind: Pod", {}));
  EXPECT_FALSE(translate("{", {}));
}

TEST(Translate, turns_pods_of_each_dialect_into_pods_with_claims) {
  const auto translated = translate_to_claims(
      R"({"kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2","nvidia.com/gpumem":"3000","nvidia.com/gpucores":"25"}}}]}})",
      {});
  ASSERT_TRUE(translated) << translated.error().front().message;
  ASSERT_EQ(translated->documents.size(), 2u);
  EXPECT_EQ(
      translated->documents[0],
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"web-c"},"spec":{"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"carve.dev","count":2,"capacity":{"requests":{"memory":"3000Mi","compute":"25"}}}}]}}}})");
  const std::string& pod = translated->documents[1];
  EXPECT_THAT(
      pod, testing::HasSubstr(R"("resourceClaims":[{"name":"gpu-c","resourceClaimTemplateName":"web-c"}])"));
  EXPECT_THAT(pod, testing::HasSubstr(R"("claims":[{"name":"gpu-c"}])"));
  for (const char* gone :
       {"carve-scheduler", "carve.dev/slot", "carve.dev/request", "carve.dev/sliced", "extender"})
    EXPECT_THAT(pod, testing::Not(testing::HasSubstr(gone)));
  const auto plain = translate_to_claims(R"({"kind":"ConfigMap","metadata":{"name":"x"}})", {});
  EXPECT_EQ(plain->documents.size(), 1u);
  EXPECT_FALSE(translate_to_claims(
      R"({"kind":"Pod","metadata":{"name":"w"},"spec":{"containers":[{"name":"c","resources":{"limits":{"carve.dev/memory":"4096"}}}]}})",
      {}));
}

}  // namespace
}  // namespace carve::kubernetes::cli
