#include "dialects/explain/translation.h"

#include <gmock/gmock.h>

#include "dialects/application/application_terms.h"
#include "dialects/eas/eas.h"
#include "dialects/pod/manifest.h"
#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

// Each row as "FIELD VALUE -> FIELD VALUE".
std::vector<std::string> shown(const std::vector<api::TranslatedField>& rows) {
  std::vector<std::string> out;
  for (const api::TranslatedField& row : rows) {
    EXPECT_FALSE(row.rule.empty()) << row.field;
    out.push_back(fmt::format("{} {} -> {} {}", row.field, row.value, row.becomes, row.result));
  }
  return out;
}

TEST(Translation, lists_the_fields_of_a_pai_eas_document) {
  const std::string text = R"({"metadata":{"name":"My_Model","instance":2,"gpu_memory":20,
    "gpu_core_percentage":30,"rolling_strategy":{"max_surge":1}},
    "cloud":{"computing":{"instances":[{"type":"ml.gu7i"}]}},"containers":[{"command":"serve"}]})";
  const auto eas = from_eas(text, {});
  ASSERT_TRUE(eas);
  const auto rows = shown(translation_of(
      {.dialect = "eas", .source = text, .metadata = eas->service.metadata, .spec = eas->service.spec}));
  EXPECT_THAT(rows, ElementsAre("metadata.name My_Model -> metadata.name my-model",
                                "metadata.instance 2 -> spec.replicas 2",
                                "metadata.gpu_memory 20 -> spec.gpu.memory 20GB",
                                "metadata.gpu_core_percentage 30 -> spec.gpu.share 30%",
                                "metadata.gpu_core_percentage 30 -> spec.gpu.policy fixed-share",
                                "metadata.rolling_strategy.max_surge 1 -> spec.update.maxSurge 1",
                                R"(containers[0].command serve -> spec.run.command ["/bin/sh","-c","serve"])",
                                "spec.gpu.memory 20GB -> slice.memory_bytes 20000000000",
                                "spec.gpu.share 30% -> slice.share_bp 3000"));
}

TEST(Translation, finds_the_documents_field_for_a_field_of_the_service) {
  const auto in_eas = [](const char* field) {
    return field_in_source("eas",
                           R"({"metadata.instance":2,"metadata":{"gpu_memory":4,"gpu_core_percentage":5},
      "containers":[{"env":[]}]})",
                           field);
  };
  EXPECT_EQ(in_eas("spec.gpu.policy"), "metadata.gpu_core_percentage");
  EXPECT_EQ(in_eas("spec.gpu.memory"), "metadata.gpu_memory");
  EXPECT_EQ(in_eas("spec.replicas"), "metadata.instance");
  EXPECT_EQ(in_eas("spec.run.env.CUDA_VISIBLE_DEVICES"), "containers[0].env.CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(in_eas("spec.run.image"), "spec.run.image") << "the document has no such field";
  EXPECT_EQ(in_eas("spec.gpuX"), "spec.gpuX");
  EXPECT_EQ(field_in_source("vke", R"({"spec":{"template":{"metadata":{"annotations":
      {"vke.volcengine.com/mgpu-compute-policy":"fixed-share"}},"spec":{"containers":[{"name":"c"},{"image":"x",
      "resources":{"limits":{"vke.volcengine.com/mgpu-core":30}}}]}}}})",
                            "spec.gpu.policy"),
            "spec.template.metadata.annotations.vke.volcengine.com/mgpu-compute-policy");
  EXPECT_EQ(field_in_source("vke", R"({"spec":{"containers":[{"name":"c"},{"image":"x",
      "resources":{"limits":{"vke.volcengine.com/mgpu-core":30}}}]}})",
                            "spec.run.image"),
            "spec.containers[1].image");
  EXPECT_EQ(field_in_source("", "{}", "spec.gpu.policy"), "spec.gpu.policy");
}

TEST(Translation, omits_ignored_fields) {
  const std::string text =
      R"({"metadata":{"name":"a","gpu_core_percentage":30},"containers":[{"command":"serve"}]})";
  const auto eas = from_eas(text, {});
  ASSERT_TRUE(eas);
  EXPECT_THAT(
      shown(translation_of(
          {.dialect = "eas", .source = text, .metadata = eas->service.metadata, .spec = eas->service.spec})),
      Contains("metadata.gpu_core_percentage 30 ->  "));
}

TEST(Translation, lists_the_fields_of_deployments_and_pods) {
  const std::string limits = R"("containers":[{"name":"c","image":"x","resources":{"limits":
    {"vke.volcengine.com/mgpu-memory":"4096","vke.volcengine.com/mgpu-core":30}}}])";
  const auto rows = [](const std::string& text) {
    const auto manifest = from_manifest(text);
    EXPECT_TRUE(manifest);
    return shown(translation_of({.dialect = manifest->service.spec.source.dialect,
                                 .source = text,
                                 .metadata = manifest->service.metadata,
                                 .spec = manifest->service.spec}));
  };
  EXPECT_THAT(rows(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{)" + limits + "}}"),
              Contains("spec.containers[0].resources.limits.vke.volcengine.com/mgpu-core 30 -> "
                       "spec.gpu.share 30%"));
  EXPECT_THAT(rows(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[
    {"name":"proxy","image":"p"},{"name":"c","image":"x","resources":{"limits":{"aliyun.com/gpu-mem":4}}}]}})"),
              ::testing::AllOf(Contains("spec.containers[1].image x -> spec.run.image x"),
                               Contains("spec.containers[1].resources.limits.aliyun.com/gpu-mem 4 -> "
                                        "spec.gpu.memory 4 units")));
  const auto deployed =
      rows(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":2,
        "template":{"metadata":{"annotations":{"carve.dev/policy":"fixed-share"}},"spec":{)" +
           limits + "}}}}");
  EXPECT_THAT(deployed, Contains("spec.replicas 2 -> spec.replicas 2"));
  EXPECT_THAT(deployed, Contains("spec.template.metadata.annotations.carve.dev/policy fixed-share -> "
                                 "spec.gpu.policy fixed-share"));
  EXPECT_THAT(deployed, Contains("spec.template.spec.containers[0].resources.limits.vke.volcengine.com/"
                                 "mgpu-memory 4096 -> spec.gpu.memory 4096MiB"));
}

TEST(Translation, lists_the_fields_of_applications_and_carve_services) {
  const std::string text = R"({"apiVersion":"carve.dev/v1","kind":"Application","metadata":{"name":"a"},
    "spec":{"gpu":{"type":"mGPU","multiDevice":true,"devices":2,"memory":"4096","compute":"0.5"},
    "run":{"command":["x"]}}})";
  const auto [application, errors] = read_application(text);
  ASSERT_TRUE(errors.empty());
  const auto service = service_of(application, {});
  ASSERT_TRUE(service) << service.error().front().message;
  const auto rows = shown(translation_of(
      {.dialect = "application", .source = text, .metadata = application.metadata, .spec = service->spec}));
  EXPECT_THAT(rows, Contains("spec.gpu.memory 4096 -> spec.gpu.memory 2048MiB"));
  EXPECT_THAT(rows, Contains("spec.gpu.compute 0.5 -> spec.gpu.share 25%"));
  EXPECT_THAT(rows, Contains("spec.gpu.devices 2 -> slice.devices 2"));
  const auto ours = shown(translation_of(
      {.dialect = "service", .source = "{}", .metadata = application.metadata, .spec = service->spec}));
  EXPECT_THAT(ours, Not(Contains(StartsWith("spec.gpu.compute"))));
  EXPECT_THAT(ours, Contains("spec.gpu.share 25% -> slice.share_bp 2500"));
}

}  // namespace
}  // namespace carve::dialects
