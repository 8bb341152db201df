#include "fronts/pod/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fronts/documents.h"
#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* example = R"(apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: binpack
  labels:
    app: binpack
spec:
  replicas: 1
  serviceName: "binpack-1"
  podManagementPolicy: "Parallel"
  selector:
    matchLabels:
      app: binpack-1
  template:
    metadata:
      labels:
        app: binpack-1
    spec:
      containers:
      - name: binpack-1
        image: registry.example/gpu-player:v2
        command:
          - bash
          - gpushare/run.sh
        resources:
          limits:
            # 16 x 128 MiB
            aliyun.com/gpu-mem: 16
)";

std::string json_of(const std::string& yaml) {
  const auto documents = documents_of(yaml);
  return documents ? documents->front() : documents.error().front().sentence;
}

// A pod with these limits, and with these members of metadata, as YAML.
std::string pod(const std::string& limits, const std::string& metadata = "",
                const std::string& container = "") {
  return json_of(
      fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: a{}{}}}\nspec:\n  containers:\n"
                  "  - {{name: c, command: [serve], resources: {{limits: {{{}}}}}{}{}}}\n",
                  metadata.empty() ? "" : ", ", metadata, limits, container.empty() ? "" : ", ", container));
}

std::string summary(const std::optional<objects::Gpu>& gpu) {
  if (!gpu) return "none";
  if (gpu->exclusive) return fmt::format("{} whole", gpu->devices);
  return fmt::format("{} x {} {} {} {}", gpu->devices, gpu->memory, gpu->share.empty() ? "-" : gpu->share,
                     gpu->isolation.empty() ? "-" : gpu->isolation, gpu->policy.empty() ? "-" : gpu->policy);
}

TEST(Manifest, the_example_of_the_memory_unit_is_read_unchanged) {
  const std::string json = json_of(example);
  EXPECT_TRUE(is_manifest(json));
  const auto manifest = from_manifest(json);
  ASSERT_TRUE(manifest) << manifest.error().front().sentence;
  const objects::Service& service = manifest->service;
  EXPECT_EQ(service.metadata.name, "binpack");
  EXPECT_EQ(service.metadata.labels, (std::map<std::string, std::string>{{"app", "binpack"}}));
  EXPECT_EQ(service.spec.replicas, 1u);
  EXPECT_EQ(service.spec.run.image, "registry.example/gpu-player:v2");
  EXPECT_EQ(service.spec.run.command, (std::vector<std::string>{"bash", "gpushare/run.sh"}));
  EXPECT_EQ(terms_of(service.spec)->gpu->memory_units, 16u);
  EXPECT_EQ(service.spec.source.dialect, "ack");
  EXPECT_EQ(service.spec.source.document, json);
  EXPECT_THAT(manifest->warnings, UnorderedElementsAre("spec.podManagementPolicy has no effect here"));
}

TEST(Manifest, each_form_of_resources_gives_its_slice) {
  const std::string v = "vke.volcengine.com/";
  const std::string three = "annotations: {" + v + "container-multiple-gpu: '3'}";
  const std::tuple<std::string, std::string, const char*> rows[] = {
      {"", "", "none"},
      {"nvidia.com/gpu: 2", "", "2 whole"},
      {"nvidia.com/gpu: '1'", "", "1 whole"},
      {"aliyun.com/gpu-mem: 16", "", "1 x 16 units - - -"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '4'}", "4 x 4 units - - -"},
      {"aliyun.com/gpu-mem: 16, aliyun.com/gpu-core.percentage: 30", "", "1 x 16 units 30% memory+compute -"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 257", "", "1 x 257MiB 30% memory+compute -"},
      {v + "mgpu-core: 100, " + v + "mgpu-memory: 4096", "", "1 x 4096MiB 100% memory+compute -"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 3072", three, "3 x 1024MiB 10% memory+compute -"},
      {v + "mgpu-core: 30, " + v + "mgpu-memory: 4096",
       "annotations: {" + v + "mgpu-compute-policy: native-burst-share}",
       "1 x 4096MiB 30% memory+compute native-burst-share"},
      {v + "mgpu-core: 200", "", "2 whole"},
  };
  for (const auto& [limits, metadata, result] : rows) {
    const auto manifest = from_manifest(pod(limits, metadata));
    ASSERT_TRUE(manifest) << limits << ": " << manifest.error().front().sentence;
    EXPECT_EQ(summary(manifest->service.spec.gpu), result) << limits;
    EXPECT_EQ(manifest->warnings, std::vector<std::string>()) << limits;
  }
}

TEST(Manifest, each_rule_of_the_resources_has_its_sentence) {
  const std::string v = "vke.volcengine.com/", both = v + "mgpu-core: 30, " + v + "mgpu-memory: ";
  const auto devices = [&](const char* number) {
    return "annotations: {" + v + "container-multiple-gpu: '" + number + "'}";
  };
  const std::tuple<std::string, std::string, const char*> rows[] = {
      {"aliyun.com/gpu-mem: 0", "", "aliyun.com/gpu-mem: 0; 1 to"},
      {"aliyun.com/gpu-mem: 1.5", "", "aliyun.com/gpu-mem: 1.5; 1 to"},
      {"aliyun.com/gpu-mem: 4Gi", "", "aliyun.com/gpu-mem: 4Gi; 1 to"},
      {"aliyun.com/gpu-core.percentage: 30", "",
       "aliyun.com/gpu-core.percentage: it needs aliyun.com/gpu-mem"},
      {"aliyun.com/gpu-mem: 1, aliyun.com/gpu-core.percentage: 7", "",
       "aliyun.com/gpu-core.percentage: 7; 5 to 100 in steps of 5"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '3'}",
       "aliyun.com/gpu-count: 3 does not divide 16 units equally"},
      {"aliyun.com/gpu-mem: 16", "labels: {aliyun.com/gpu-count: '0'}", "aliyun.com/gpu-count: '0'; 1 to 16"},
      {"aliyun.com/gpu-mem: 16, aliyun.com/gpu-core.percentage: 30", "labels: {aliyun.com/gpu-count: '2'}",
       "aliyun.com/gpu-count: it shares memory only; leave out aliyun.com/gpu-core.percentage"},
      {"aliyun.com/gpu-mem: 16", "labels: {alibabacloud.com/eci: 'true'}",
       "elastic containers (VCI) do not support mGPU"},
      {both + "256", "", "mgpu-memory: 256; single-card sharing needs more than 256 MiB"},
      {both + "1024", devices("2"),
       "mgpu-memory: 1024 over 2 cards; multi-card sharing needs more than 1024 MiB"},
      {both + "1026", devices("4"), "mgpu-memory: 1026 does not divide equally over 4 cards"},
      {both + "1600", devices("8"), "mgpu-memory: 1600 over 8 cards; each needs at least 256 MiB"},
      {both + "4200", devices("7"), "mgpu-core: 30 does not divide into whole 0.01 % over 7 cards"},
      {both + "4096", devices("9"), "container-multiple-gpu: '9'; 1 to 8"},
      {both + "4096", devices("2,1"), "container-multiple-gpu: '2,1'; 1 to 8"},
      {both + "4096", "annotations: {" + v + "mgpu-compute-policy: burst}",
       "mgpu-compute-policy: burst; it is fixed-share, guaranteed-burst-share or native-burst-share"},
      {both + "4096", "annotations: {" + v + "burst-to-vci: enforce}",
       "elastic containers (VCI) do not support mGPU"},
      {v + "mgpu-memory: 4096", "", "mgpu-memory: it needs mgpu-core"},
      {v + "mgpu-core: 30", "", "mgpu-core: it needs mgpu-memory"},
      {v + "mgpu-core: 150", "", "mgpu-core: 150; 1 to 100, or whole cards as 100, 200, ..."},
      {v + "mgpu-core: 150, " + v + "mgpu-memory: 4096", "", "vke.volcengine.com/mgpu-core: 150; 1 to 100"},
      {"nvidia.com/gpu: 17", "", "nvidia.com/gpu: 17; 1 to 16"},
      {"nvidia.com/gpu: 1, aliyun.com/gpu-mem: 4", "",
       "container c mixes aliyun.com/gpu-mem and nvidia.com/gpu; keep one"},
      {"aliyun.com/gpu-mem: 4, " + both + "4096", "",
       "container c mixes aliyun.com/gpu-mem and vke.volcengine.com/mgpu-memory; keep one"},
  };
  for (const auto& [limits, metadata, sentence] : rows) {
    const auto manifest = from_manifest(pod(limits, metadata));
    ASSERT_FALSE(manifest) << limits << metadata;
    EXPECT_EQ(manifest.error().size(), 1u) << limits << metadata;
    EXPECT_THAT(manifest.error().front().sentence, HasSubstr(sentence)) << limits;
  }
}

TEST(Manifest, the_first_container_is_the_program) {
  const auto manifest = from_manifest(json_of(R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: n, annotations: {note: x}, uid: u}
spec:
  replicas: 3
  strategy: {}
  template:
    spec:
      containers:
      - name: c
        image: i
        command: [sh, -c]
        args: [serve]
        env:
        - {name: A, value: "1"}
        - {name: B}
        - {name: C, valueFrom: {fieldRef: {fieldPath: x}}}
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: 2, memory: 4Gi}, requests: {cpu: 500m, memory: 1G}}
      - {name: d}
)"));
  ASSERT_TRUE(manifest) << manifest.error().front().sentence;
  const objects::Service& service = manifest->service;
  EXPECT_EQ(service.metadata.namespace_, "n");
  EXPECT_EQ(service.metadata.annotations.at("note"), "x");
  EXPECT_EQ(service.spec.replicas, 3u);
  EXPECT_EQ(service.spec.run.command, (std::vector<std::string>{"sh", "-c", "serve"}));
  EXPECT_EQ(service.spec.run.env, (std::map<std::string, std::string>{{"A", "1"}, {"B", ""}}));
  EXPECT_EQ(*terms_of(service.spec), (ReplicaTerms{.cpu_request_milli = 500,
                                                   .cpu_limit_milli = 2000,
                                                   .memory_request_bytes = 1'000'000'000,
                                                   .memory_limit_bytes = 4ull << 30}));
  EXPECT_EQ(service.spec.source.dialect, "kubernetes");
  EXPECT_THAT(manifest->warnings,
              UnorderedElementsAre("metadata.uid has no effect here", "spec.strategy has no effect here",
                                   "spec.template.spec.containers[0].env[2].valueFrom has no effect here",
                                   "spec.template.spec.containers[0].ports has no effect here",
                                   "spec.template.spec.containers[1] has no effect here"));
}

TEST(Manifest, many_labels_are_refused_in_time) {
  std::string labels;
  for (int i = 0; i < 60'000; ++i) labels += fmt::format("{}\"k{}\": \"\"", i == 0 ? "" : ",", i);
  const auto manifest = from_manifest(fmt::format(
      R"({{"kind": "Pod", "apiVersion": "v1", "metadata": {{"name": "a", "labels": {{{}}}}}, "spec": {{"containers": [{{"command": ["x"]}}]}}}})",
      labels));
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().front().sentence, "metadata.labels: there are 60000; use at most 64");
}

TEST(Manifest, each_error_names_its_field) {
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {pod("cpu: two"), "spec.containers[0].resources.limits.cpu", "'two' is not a number of cores"},
      {pod("memory: 4GiB"), "spec.containers[0].resources.limits.memory",
       "'4GiB' is not a quantity of bytes; try 4Gi"},
      {pod("memory: -1"), "spec.containers[0].resources.limits.memory", "'-1' is not a quantity of bytes"},
      {pod("memory: 1m"), "spec.containers[0].resources.limits.memory", "'1m' is not a quantity"},
      {pod("memory: []"), "spec.containers[0].resources.limits.memory", "[] is not a text"},
      {pod("", "", "env: [{value: x}]"), "spec.containers[0].env[0].name", "the variable has no name"},
      {pod("", "", "args: x"), "spec.containers[0].args", "\"x\" is not a list"},
      {pod("", "", "args: [1]"), "spec.containers[0].args[0]", "1 is not a text"},
      {pod("", "labels: {a: 1}"), "metadata.labels.a", "1 is not a text"},
      {pod("", "namespace: N"), "metadata.namespace", "'N' is not a name"},
      {R"({"kind": "Pod", "apiVersion": "v2", "metadata": {"name": "a"}, "spec": {"containers": [{"command": ["x"]}]}})",
       "apiVersion", "'v2' is not v1, which a Pod has"},
      {R"({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}})", "containers",
       "there is no container"},
      {R"({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}, "spec": {"replicas": 65, "template": {"spec": {"containers": [{"command": ["x"]}]}}}})",
       "spec.replicas", "65 is not a whole number from 0 to 64"},
      {R"({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"containers": [{"command": ["x"],
           "resources": {"requests": {"aliyun.com/gpu-mem": 4}}}]}})",
       "spec.containers[0].resources.requests.aliyun.com/gpu-mem", "4 is requested, and the limit differs"},
      {R"({"kind": "Job"})", "", "the document is not a Pod, Deployment or StatefulSet"},
      {"[]", "", "the document is not a Pod"},
      {"{", "", "not JSON"},
  };
  for (const auto& [json, field, sentence] : rows) {
    const auto manifest = from_manifest(json);
    ASSERT_FALSE(manifest) << json;
    EXPECT_EQ(manifest.error().front().field, field) << json;
    EXPECT_THAT(manifest.error().front().sentence, HasSubstr(sentence)) << json;
  }
  EXPECT_FALSE(is_manifest("[]"));
  EXPECT_FALSE(is_manifest(R"({"kind": 5})"));
}

}  // namespace
}  // namespace carve::fronts
