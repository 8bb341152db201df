#include "dialects/pod/unknown_requests.h"

#include <gmock/gmock.h>

#include "dialects/pod/admission.h"
#include "dialects/pod/manifest.h"
#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PodSettings of_cluster() {
  PodSettings out;
  out.has_other_makers = true;
  return out;
}

std::string pod_with(const std::string& limits, const std::string& annotations = "") {
  const auto documents = yaml::documents_of(fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{{}}}}}\nspec: {{containers: "
      "[{{name: c, command: [serve], resources: {{limits: {{{}}}}}}}]}}",
      annotations, limits));
  return documents ? documents->front() : "";
}

// Returns the messages on one machine and in a cluster.
std::vector<std::string> refusals(const std::string& json, PodSettings settings = {}) {
  std::vector<std::string> out;
  if (const auto read = from_manifest(json, settings); !read) out.push_back(read.error().front().message);
  settings.has_other_makers = true;
  if (const auto read = admit(*api::parse(json), settings); !read)
    out.push_back(read.error().front().message);
  return out;
}

TEST(UnknownRequests, rejects_a_resource_that_looks_like_a_gpu) {
  for (const char* resource :
       {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "hami.io/gpu", "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb", "tke.cloud.tencent.com/qgpu-core", "nvshare.com/gpu",
        "tencent.com/vcuda-memory", "koordinator.sh/gpu-core", "nvidia.com/gpu-mem", "aliyun.com/gpu-memory"})
    EXPECT_THAT(refusals(pod_with(fmt::format("{}: 1", resource))),
                ElementsAre(StartsWith(fmt::format("container c: {}: 1: Carve does not support", resource)),
                            StartsWith(fmt::format("container c: {}: 1: Carve does not support", resource))))
        << resource;
  EXPECT_THAT(refusals(pod_with("hami.io/gpu: 1, carve.dev/memory: 1Gi")), ::testing::SizeIs(2))
      << "beside ours";
  for (const char* resource : {"cpu", "rdma/hca", "nvidia.com/hostdev", "hugepages-2Mi"})
    EXPECT_FALSE(is_unknown_gpu_resource(resource)) << resource;
}

TEST(UnknownRequests, rejects_an_annotation_that_requests_a_gpu) {
  for (const char* annotation :
       {"gpu-fraction: '0.5'", "gpu-memory: '4000'", "nvidia.com/use-gputype: A10"}) {
    const std::string key = std::string(annotation).substr(0, std::string(annotation).rfind(": "));
    EXPECT_THAT(refusals(pod_with("cpu: 1", annotation)),
                ElementsAre(StartsWith("annotation " + key), StartsWith("annotation " + key)));
  }
  EXPECT_THAT(refusals(pod_with("nvidia.com/gpumem: 1000", "nvidia.com/use-gputype: A10")), ElementsAre());
  EXPECT_THAT(from_manifest(pod_with("nvidia.com/gpumem: 1000", "nvidia.com/use-gputype: A10"))->warnings,
              ElementsAre("metadata.annotations.nvidia.com/use-gputype has no effect here"));
  EXPECT_THAT(refusals(pod_with("nvidia.com/gpumem: 1000", "gpu-memory: '4000'")), ::testing::SizeIs(2));
}

TEST(UnknownRequests, the_message_names_the_program_and_the_option_that_allow_the_request) {
  const auto messages = refusals(pod_with("hami.io/gpu: 1"));
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_THAT(messages[0], HasSubstr("start carve-controller with --allow-unknown-gpu-requests"));
  EXPECT_THAT(messages[1], HasSubstr("start carve-coordinator with --allow-unknown-gpu-requests"));
  PodSettings settings;
  settings.allows_unknown_gpu_requests = true;
  EXPECT_THAT(refusals(pod_with("hami.io/gpu: 1", "gpu-memory: '1'"), settings), ElementsAre());
}

TEST(UnknownRequests, checks_every_container_and_the_template) {
  objects::ErrorList errors;
  const auto json = api::parse(
      R"({"spec": {"containers": [{"name": "a"}, {"name": "b", "resources": {"requests": {"hami.io/gpu": 1},
          "limits": {"hami.io/gpu": 1}}}], "initContainers": [{"resources": {"limits": {"amd.com/gpu": 1}}}]}})");
  refuse_unknown_gpu_requests(*json, "spec.template.", /*has_slice=*/false, {}, errors);
  ASSERT_EQ(errors.all().size(), 2u);
  EXPECT_EQ(errors.all()[0].field, "spec.template.spec.containers[1].resources.limits.hami.io/gpu");
  EXPECT_EQ(errors.all()[1].field, "spec.template.spec.initContainers[0].resources.limits.amd.com/gpu");
  objects::ErrorList in_cluster;
  refuse_unknown_gpu_requests(*json, "", /*has_slice=*/false, of_cluster(), in_cluster);
  EXPECT_EQ(in_cluster.all().size(), 1u) << "devices of other vendors have their own nodes";
}

}  // namespace
}  // namespace carve::dialects
