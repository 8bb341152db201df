#include "controller/objects/submission.h"

#include <gmock/gmock.h>

#include "yaml/documents.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* ours = R"(apiVersion: carve.dev/v1
kind: Service
metadata: {name: a}
spec: {run: {command: [serve]}}
)";
constexpr const char* eas = R"({"metadata":{"name":"b"},"containers":[{"command":"serve"}]})";

TEST(Submission, detects_the_dialect_of_each_document) {
  const auto both = read_submissions(std::string(ours) + "---\n" + eas + "\n", "auto", {});
  ASSERT_TRUE(both) << both.error().front().message;
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].metadata.name, "a");
  EXPECT_EQ((*both)[0].form.source.dialect, "");
  EXPECT_EQ((*both)[1].form.source.dialect, "eas");
}

TEST(Submission, rejects_a_document_of_another_api_before_checking_its_fields) {
  const auto message = [](const std::string& text) {
    const auto read = read_submissions(text, "auto", {});
    return read ? "" : read.error().front().message;
  };
  EXPECT_EQ(message("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {}}\n"),
            "apiVersion: 'batch/v1'; the apiVersion of a Carve Job is carve.dev/v1");
  for (const char* kind : {"Queue", "Pool", "Node", "Job", "Tariff", "Budget", "RayCluster"})
    EXPECT_EQ(message(fmt::format("kind: {}\nmetadata: {{name: a}}\n", kind)),
              fmt::format("apiVersion: is required; the apiVersion of a Carve {} is carve.dev/v1", kind));
}

// Kubernetes documents: a Deployment whose pods have the label app: APP, and a Service that selects them.
std::string deployment(const std::string& name, const std::string& app, const std::string& command = "serve",
                       unsigned replicas = 1, const std::string& space = "default") {
  return fmt::format(
      "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {}, namespace: {}}}\nspec: {{replicas: "
      "{}, "
      "template: {{metadata: {{labels: {{app: {}, tier: web}}}}, spec: {{containers: [{{command: [sh, -c, "
      "'{}'], "
      "ports: [{{name: http, containerPort: 30000}}]}}]}}}}}}\n",
      name, space, replicas, app, command);
}
std::string address(const std::string& name, const std::string& selector,
                    const std::string& port = "port: 8000", const std::string& more = "") {
  return fmt::format(
      "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec: {{selector: {{{}}}, ports: "
      "[{{{}}}]{}}}\n",
      name, selector, port, more);
}

TEST(Submission, applies_the_port_of_a_kubernetes_service_to_the_workload_that_it_selects) {
  const std::string llm = deployment("llm", "llm"), other = deployment("other", "other");
  for (const std::string& text : {llm + other + address("llm-service", "app: llm"),
                                  address("other", "app: llm, tier: web") + other + llm,
                                  deployment("llm", "llm", "serve", 1, "default") + address("x", "app: llm") +
                                      address("y", "app: llm", "port: 9000") + other}) {
    const auto read = read_submissions(text, "auto", {});
    ASSERT_TRUE(read) << read.error().front().message;
    for (const Submission& one : *read)
      EXPECT_EQ(one.form.port.value_or(0), one.metadata.name == "llm" ? 8000u : 0u) << text;
  }
  EXPECT_TRUE(read_submissions(llm + address("a", "app: llm"), "kubernetes", {}));
}

TEST(Submission, keeps_the_port_on_which_the_program_listens) {
  const auto target = [](const std::string& port, const std::string& command) {
    const auto read =
        read_submissions(deployment("a", "a", command) + address("a", "app: a", port), "auto", {});
    EXPECT_TRUE(read) << read.error().front().message;
    return read ? read->front().form.target_port : 0;
  };
  EXPECT_EQ(target("port: 8000, targetPort: 30000", "serve"), 30000u);
  EXPECT_EQ(target("port: 8000, targetPort: \"30000\"", "serve"), 30000u);
  EXPECT_EQ(target("port: 8000, targetPort: http", "serve"), 30000u);
  EXPECT_EQ(target("port: 8000", "serve"), 8000u);
  for (const char* command : {"serve $PORT", "serve ${PORT:-8000}", "serve \"$PORT\""})
    EXPECT_EQ(target("port: 8000, targetPort: 30000", command), std::nullopt) << command;
  EXPECT_EQ(target("port: 8000", "serve $PORTS $PORT_NUMBER"), 8000u);
}

TEST(Submission, rejects_a_kubernetes_service_without_an_effect_by_its_field) {
  const std::string two = deployment("a", "a") + deployment("b", "b");
  const std::tuple<std::string, const char*, const char*> rows[] = {
      {two + address("a", "app: c"), "spec.selector", "the Service 'a' selects the pods of no Deployment"},
      {two + address("a", "tier: web"), "spec.selector", "the Service 'a' selects the pods of a, b, but an"},
      {two + address("a", ""), "spec.selector", "the Service has no selector; add the labels of its pods"},
      {deployment("a", "a", "serve", 1, "team") + address("a", "app: a"), "spec.selector",
       "of no Deployment"},
      {two + address("a", "app: a", "name: x"), "spec.ports[0].port", "the Service has no port"},
      {two + address("a", "app: a", "port: 8000, protocol: UDP"), "spec.ports[0].protocol", "'UDP'"},
      {two + address("a", "app: a", "port: 8000, targetPort: grpc"), "spec.ports[0].targetPort",
       "'grpc' is neither a port number nor the name of a port of the container"},
      {deployment("a", "a", "serve", 2) + address("a", "app: a", "port: 8000, targetPort: 30000"),
       "spec.ports[0].targetPort", "30000: only one of the 2 replicas can listen on this port"}};
  for (const auto& [text, field, message] : rows) {
    const auto read = read_submissions(text, "auto", {});
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().front().field, field);
    EXPECT_THAT(read.error().front().message, HasSubstr(message));
  }
  const auto warned =
      read_submissions(deployment("a", "a") + address("a", "app: a", "port: 1",
                                                      ", type: LoadBalancer, sessionAffinity: ClientIP"),
                       "auto", {});
  ASSERT_TRUE(warned) << warned.error().front().message;
  EXPECT_THAT(warned->front().warnings,
              testing::IsSupersetOf(
                  {HasSubstr("Service a: spec.type is ignored: the address is local to this machine"),
                   HasSubstr("Service a: spec.sessionAffinity has no effect here")}));
}

TEST(Submission, names_the_field_that_the_user_wrote_in_errors) {
  const auto first = [](const std::string& text) {
    const auto read = read_submissions(text, "auto", {});
    return read ? api::FieldError() : read.error().front();
  };
  const auto in_eas = first(
      R"({"metadata":{"name":"b","gpu_memory":4},"containers":[{"command":"serve","env":[{"name":"CUDA_VISIBLE_DEVICES","value":"7"}]}]})");
  EXPECT_EQ(in_eas.field, "containers[0].env.CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(in_eas.message, testing::StartsWith("containers[0].env.CUDA_VISIBLE_DEVICES: '7' is not"));
  const auto in_manifest = first(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {containers: [{name: p, command: [x]}, "
      "{command: [x], "
      "env: [{name: CUDA_VISIBLE_DEVICES, value: '7'}], resources: {limits: {nvidia.com/gpumem: 10}}}]}\n");
  EXPECT_EQ(in_manifest.field, "spec.containers[1].env.CUDA_VISIBLE_DEVICES");
}

TEST(Submission, recognizes_compose_files_and_helm_values) {
  for (const char* dialect : {"auto", "eas", "kubernetes"}) {
    const auto read = read_submissions("services: {model: {image: x}}\n", dialect, {});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().front().field, "services");
    EXPECT_THAT(read.error().front().message, HasSubstr("this is a Compose file with the services model"));
  }
}

TEST(Submission, rejects_all_documents_and_names_the_invalid_one) {
  const auto read = read_submissions(std::string(ours) + "---\n" + ours + "---\nkind: Task\n", "auto", {});
  ASSERT_FALSE(read);
  std::string all;
  for (const api::FieldError& e : read.error()) all += e.message + "\n";
  EXPECT_THAT(all, HasSubstr("document 3: kind: 'Task' is not a kind; the kinds are Service, Application"));
  EXPECT_FALSE(read_submissions("", "auto", {}));
}

TEST(Submission, replaces_a_list_by_its_items) {
  const std::string item = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},
    "spec":{"containers":[{"command":["serve"]}]}})";
  for (const std::string head : {R"("apiVersion":"v1","kind":"List",)", R"("metadata":{"continue":""},)"}) {
    const auto read =
        read_submissions(std::string(ours) + "---\n{" + head + R"("items":[)" + item + "]}", "auto", {});
    ASSERT_TRUE(read) << read.error().front().message;
    ASSERT_EQ(read->size(), 2u);
    EXPECT_EQ((*read)[1].metadata.name, "b");
  }
  const auto refused = read_submissions(R"({"items":[5]})", "auto", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().front().message, "document 1: items: a list may contain only objects");
  EXPECT_EQ(read_submissions(R"({"items":[]})", "auto", {}).error().front().message, "there is no document");
}

TEST(Submission, does_not_mistake_a_carve_document_without_kind_for_pai_eas) {
  const auto read = read_submissions("metadata: {name: a}\nspec: {replicas: 1}\n", "auto", {});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().front().message,
              HasSubstr("kind: is required; the kinds are Service, Application"));
}

TEST(Submission, keeps_a_document_of_another_system_byte_for_byte) {
  const std::string manifest =
      "# For the night.\napiVersion: v1\nkind: Pod\nmetadata: {name: b}   # a comment\n"
      "spec: {containers: [{command: [serve]}]}\n";
  const auto read =
      read_submissions(std::string(ours) + "---\n" + manifest + "--- \n" + eas + "\n", "auto", {});
  ASSERT_TRUE(read) << read.error().front().message;
  EXPECT_EQ((*read)[0].form.source.document, "");
  EXPECT_EQ((*read)[1].form.source.document, manifest);
  EXPECT_THAT((*read)[1].spec.json(), HasSubstr("# For the night.\\napiVersion"));
  EXPECT_EQ((*read)[2].form.source.document, eas);
  EXPECT_EQ(yaml::json_of(manifest).front(), '{');
}

TEST(Submission, reports_all_other_errors_next_to_an_unknown_field) {
  const auto fields = [](const char* document) {
    std::vector<std::string> out;
    const auto read = read_submissions(document, "auto", {});
    for (const api::FieldError& e : read ? api::FieldErrors{} : read.error()) out.push_back(e.field);
    return out;
  };
  EXPECT_THAT(fields("apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: Bad_Name}\n"
                     "spec: {replcas: 2, replicas: 65, gpu: {memory: 12X}, run: {command: [serve]}}\n"),
              UnorderedElementsAre("spec.replcas", "spec.replicas", "spec.gpu.memory", "metadata.name"));
  EXPECT_THAT(
      fields("apiVersion: carve.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {run: 7, port: 0}\n"),
      UnorderedElementsAre("spec.run", "spec.port"))
      << "a command is not reported as missing if its run cannot be parsed";
  EXPECT_THAT(
      fields("apiVersion: carve.dev/v1\nkind: Application\nmetadata: {name: a}\n"
             "spec: {gpus: 1, gpu: {type: mGPU, memory: 256, compute: '1.5'}, run: {command: [serve]}}\n"),
      UnorderedElementsAre("spec.gpus", "spec.gpu.memory", "spec.gpu.compute"));
  EXPECT_THAT(
      fields("apiVersion: carve.dev/v1\nkind: Pool\nmetadata: {name: p}\nspec: {typ: eas, type: x}\n"),
      UnorderedElementsAre("spec.typ", "spec.type"));
}

TEST(Submission, runs_applications_and_manifests_as_services) {
  const auto read = read_submissions(
      "apiVersion: carve.dev/v1\nkind: Application\nmetadata: {name: a}\n"
      "spec: {gpu: {type: mGPU, memory: 4096, compute: 0.30}, run: {command: [serve]}}\n"
      "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: b}\nspec: {replicas: 3, template: "
      "{spec: {containers: [{command: [serve], resources: {limits: {aliyun.com/gpu-mem: 16}}}]}}}\n",
      "auto", {});
  ASSERT_TRUE(read) << read.error().front().message;
  EXPECT_EQ((*read)[0].kind, objects::Kind::application);
  EXPECT_THAT((*read)[0].spec.json(), HasSubstr(R"("compute":"0.30")"));
  EXPECT_EQ((*read)[0].form.gpu->share, "30%");
  EXPECT_EQ((*read)[1].kind, objects::Kind::service);
  EXPECT_EQ((*read)[1].form.replicas, 3u);
  EXPECT_EQ((*read)[1].form.gpu->memory, "16 units");
  EXPECT_EQ((*read)[1].form.source.dialect, "ack");
}

}  // namespace
}  // namespace carve::controller
