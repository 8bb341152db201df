#include "dialects/pod/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dialects/pod/testing/dialect_rows.h"
#include "objects/rules/service_terms.h"
#include "yaml/documents.h"

namespace carve::dialects {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

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
  const auto documents = yaml::documents_of(yaml);
  return documents ? documents->front() : documents.error().front().message;
}

// Returns a pod with these limits and these members of metadata, as YAML.
std::string pod(const std::string& limits, const std::string& metadata = "",
                const std::string& container = "") {
  return json_of(
      fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: a{}{}}}\nspec:\n  containers:\n"
                  "  - {{name: c, command: [serve], resources: {{limits: {{{}}}}}{}{}}}\n",
                  metadata.empty() ? "" : ", ", metadata, limits, container.empty() ? "" : ", ", container));
}

TEST(Manifest, translates_the_example_of_the_memory_unit_without_changes) {
  const std::string json = json_of(example);
  EXPECT_TRUE(is_manifest(json));
  const auto manifest = from_manifest(json);
  ASSERT_TRUE(manifest) << manifest.error().front().message;
  const objects::Service& service = manifest->service;
  EXPECT_EQ(service.metadata.name, "binpack");
  EXPECT_EQ(service.metadata.labels, (std::map<std::string, std::string>{{"app", "binpack"}}));
  EXPECT_EQ(service.spec.replicas, 1u);
  EXPECT_EQ(service.spec.update.max_surge, 0u);
  EXPECT_EQ(service.metadata.annotations.at(replica_names_annotation), ordinal_names);
  EXPECT_EQ(service.spec.run.image, "registry.example/gpu-player:v2");
  EXPECT_EQ(service.spec.run.command, (std::vector<std::string>{"bash", "gpushare/run.sh"}));
  EXPECT_EQ(objects::terms_of(service.spec)->gpu->memory_units, 16u);
  EXPECT_EQ(service.spec.source.dialect, "ack");
  EXPECT_EQ(service.spec.source.document, json);
  EXPECT_THAT(manifest->warnings, ::testing::IsEmpty());
}

TEST(Manifest, warns_that_replicas_are_started_together) {
  const auto with = [](const char* policy) {
    std::string text = example;
    text.replace(text.find("\"Parallel\""), 10, policy);
    return from_manifest(json_of(text));
  };
  EXPECT_THAT(with("OrderedReady")->warnings,
              UnorderedElementsAre(
                  "spec.podManagementPolicy OrderedReady has no effect here: replicas are started together"));
  ASSERT_FALSE(with("Paralel"));
  EXPECT_EQ(with("Paralel").error().front().message,
            "spec.podManagementPolicy: 'Paralel' is neither Parallel nor OrderedReady");
}

TEST(Manifest, each_form_of_resources_results_in_its_slice) {
  for (const auto& [limits, metadata, result] : testing::accepted()) {
    const auto manifest = from_manifest(pod(limits, metadata));
    ASSERT_TRUE(manifest) << limits << ": " << manifest.error().front().message;
    const auto terms = objects::terms_of(manifest->service.spec);
    ASSERT_TRUE(terms && terms->gpu) << limits;
    const Amounts& here = *terms->gpu;
    // Fields without meaning on one machine cause warnings.
    EXPECT_EQ(result.substr(0, testing::summary(here).size()), testing::summary(here)) << limits;
    EXPECT_EQ(manifest->warnings.empty(), result == testing::summary(here)) << limits;
  }
  const auto none = from_manifest(pod(""));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->service.spec.gpu);
}

TEST(Manifest, each_rule_for_resources_has_its_message) {
  for (const auto& [limits, metadata, message] : testing::refused()) {
    const auto manifest = from_manifest(pod(limits, metadata));
    ASSERT_FALSE(manifest) << limits << metadata;
    EXPECT_EQ(manifest.error().size(), 1u) << limits << metadata;
    EXPECT_EQ(manifest.error().front().message.substr(0, message.size()), message) << limits;
  }
}

TEST(Manifest, runs_the_first_container_if_none_requests_a_gpu) {
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
  ASSERT_TRUE(manifest) << manifest.error().front().message;
  const objects::Service& service = manifest->service;
  EXPECT_EQ(service.metadata.namespace_, "n");
  EXPECT_EQ(service.metadata.annotations.at("note"), "x");
  EXPECT_EQ(service.spec.replicas, 3u);
  EXPECT_EQ(service.spec.run.command, (std::vector<std::string>{"sh", "-c"}));
  EXPECT_EQ(service.spec.run.args, (std::vector<std::string>{"serve"}));
  EXPECT_EQ(service.spec.run.env, (std::map<std::string, std::string>{{"A", "1"}, {"B", ""}}));
  EXPECT_EQ(*objects::terms_of(service.spec), (objects::ReplicaTerms{.cpu_request_milli = 500,
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

// Returns a pod with these containers and init containers, as YAML.
std::string pod_with_containers(const std::string& containers, const std::string& init = "") {
  return json_of(
      fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{}]{}}}\n",
                  containers, init.empty() ? "" : ", initContainers: [" + init + "]"));
}

TEST(Manifest, runs_the_container_that_requests_a_gpu) {
  const std::string proxy = "{name: proxy, command: [proxy]}";
  const auto with = [](const std::string& name, const std::string& limits) {
    return fmt::format("{{name: {0}, command: [{0}], resources: {{limits: {{{1}}}}}}}", name, limits);
  };
  const std::string model = with("model", "nvidia.com/gpu: 1, nvidia.com/gpumem: 4096");
  for (const std::string& containers :
       {proxy + ", " + model, model + ", " + proxy, with("none", "nvidia.com/gpu: 0") + ", " + model,
        proxy + ", " + with("model", "aliyun.com/gpu-mem: 16"),
        proxy + ", " + with("model", "nvidia.com/gpu: 1"),
        proxy + ", " + with("model", "carve.dev/memory: 4Gi")}) {
    const auto manifest = from_manifest(pod_with_containers(containers));
    ASSERT_TRUE(manifest) << containers << manifest.error().front().message;
    EXPECT_EQ(manifest->service.spec.run.command, (std::vector<std::string>{"model"})) << containers;
    EXPECT_TRUE(manifest->service.spec.gpu) << containers;
    EXPECT_EQ(manifest->warnings.size(), 1u) << containers;  // The warning about the other container.
  }
  const auto numbers = from_manifest(json_of(fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: "
      "{{vke.volcengine.com/container-multiple-gpu: "
      "'1,2'}}}}\nspec: {{containers: [{}, {}]}}\n",
      proxy, with("model", "vke.volcengine.com/mgpu-core: 30, vke.volcengine.com/mgpu-memory: 4096"))));
  ASSERT_TRUE(numbers) << numbers.error().front().message;
  EXPECT_EQ(numbers->service.spec.gpu->devices, 2u) << "the second container's number is used";
}

TEST(Manifest, rejects_several_containers_that_request_a_gpu) {
  const std::string gpu = "resources: {limits: {nvidia.com/gpumem: 4096}}";
  const std::string plain = "{name: c, command: [x]}";
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {pod_with_containers("{name: c, command: [x], " + gpu + "}, " + plain + ", {name: d, command: [x], " +
                           gpu + "}"),
       "spec.containers",
       "the containers 'c', 'd' request a GPU, but a service runs one container; write a manifest"},
      {pod_with_containers(plain, "{name: load, command: [x], " + gpu + "}"), "spec.initContainers",
       "the init container 'load' requests a GPU, but init containers do not run here; move the limits"}};
  for (const auto& [json, field, message] : rows) {
    const auto manifest = from_manifest(json);
    ASSERT_FALSE(manifest) << json;
    EXPECT_EQ(manifest.error().front().field, field);
    EXPECT_THAT(manifest.error().front().message, HasSubstr(message));
  }
}

TEST(Manifest, expands_references_to_variables_as_kubernetes_does) {
  const auto manifest = from_manifest(pod(
      "", "",
      "args: ['$(A)-$(B)', '$$(A)', '$(NONE) $(A', '$A $', '$$$(A)'], env: [{name: A, value: x}, {name: B, "
      "value: '$(A)y$(C)'}, {name: C, value: z}]"));
  ASSERT_TRUE(manifest) << manifest.error().front().message;
  EXPECT_EQ(manifest->service.spec.run.env.at("B"), "xy$(C)") << "C is defined later";
  EXPECT_THAT(manifest->service.spec.run.command,
              ::testing::ElementsAre("serve", "x-xy$(C)", "$(A)", "$(NONE) $(A", "$A $", "$x"));
}

TEST(Manifest, rejects_many_labels_quickly) {
  std::string labels;
  for (int i = 0; i < 60'000; ++i) labels += fmt::format("{}\"k{}\": \"\"", i == 0 ? "" : ",", i);
  const auto manifest = from_manifest(fmt::format(
      R"({{"kind": "Pod", "apiVersion": "v1", "metadata": {{"name": "a", "labels": {{{}}}}}, "spec": {{"containers": [{{"command": ["x"]}}]}}}})",
      labels));
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().front().message, "metadata.labels: there are 60000; use at most 64");
}

TEST(Manifest, each_error_reports_its_field) {
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {pod("cpu: two"), "spec.containers[0].resources.limits.cpu", "'two' is not a number of cores"},
      {pod("memory: 4GiB"), "spec.containers[0].resources.limits.memory",
       "'4GiB' is not a quantity of bytes; try 4Gi"},
      {pod("memory: -1"), "spec.containers[0].resources.limits.memory", "'-1' is not a quantity of bytes"},
      {pod("memory: 1m"), "spec.containers[0].resources.limits.memory", "'1m' is not a quantity"},
      {pod("memory: []"), "spec.containers[0].resources.limits.memory", "[] is not a string"},
      {pod("", "", "env: [{value: x}]"), "spec.containers[0].env[0].name", "the variable has no name"},
      {pod("", "", "args: x"), "spec.containers[0].args", "\"x\" is not a list"},
      {pod("", "", "args: [1]"), "spec.containers[0].args[0]", "1 is not a string; write it in quotes"},
      {pod("", "labels: {a: 1}"), "metadata.labels.a", "1 is not a string"},
      {pod("", "namespace: N"), "metadata.namespace", "'N' is not a valid name"},
      {R"({"kind": "Pod", "apiVersion": "v2", "metadata": {"name": "a"}, "spec": {"containers": [{"command": ["x"]}]}})",
       "apiVersion", "'v2' is not v1, the version of a Pod"},
      {R"({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}})", "containers",
       "the pod has no container"},
      {R"({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}, "spec": {"replicas": 65, "template": {"spec": {"containers": [{"command": ["x"]}]}}}})",
       "spec.replicas", "65 is not a whole number from 0 to 64"},
      {R"({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"containers": [{"command": ["x"],
           "resources": {"requests": {"aliyun.com/gpu-mem": 4}}}]}})",
       "spec.containers[0].resources.requests.aliyun.com/gpu-mem", "the request 4 must equal the limit"},
      {R"({"kind": "Job"})", "", "the document is not a Pod, Deployment or StatefulSet"},
      {"[]", "", "the document is not a Pod"},
      {"{", "", "not JSON"},
  };
  for (const auto& [json, field, message] : rows) {
    const auto manifest = from_manifest(json);
    ASSERT_FALSE(manifest) << json;
    EXPECT_EQ(manifest.error().front().field, field) << json;
    EXPECT_THAT(manifest.error().front().message, HasSubstr(message)) << json;
  }
  EXPECT_FALSE(is_manifest("[]"));
  EXPECT_FALSE(is_manifest(R"({"kind": 5})"));
}

TEST(Manifest, reports_each_error_once) {
  const auto manifest = from_manifest(
      R"({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"containers": [{"command": ["x"],
          "resources": {"limits": {"carve.dev/memory": "2Gi"}, "requests": {"carve.dev/memory": "1Gi"}}}]}})");
  ASSERT_FALSE(manifest);
  ASSERT_EQ(manifest.error().size(), 1u) << manifest.error().at(1).message;
  EXPECT_THAT(manifest.error().front().message, HasSubstr("must equal the limit"));
}

}  // namespace
}  // namespace carve::dialects
