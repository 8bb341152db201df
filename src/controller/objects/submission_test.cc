#include "controller/objects/submission.h"

#include <gmock/gmock.h>

#include "fronts/documents.h"

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

TEST(Submission, the_dialect_of_each_document_is_seen) {
  const auto both = read_submissions(std::string(ours) + "---\n" + eas + "\n", "auto", {});
  ASSERT_TRUE(both) << both.error().front().sentence;
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].metadata.name, "a");
  EXPECT_EQ((*both)[0].form.source.dialect, "");
  EXPECT_EQ((*both)[1].form.source.dialect, "eas");
}

TEST(Submission, a_document_of_another_api_is_refused_before_its_fields) {
  const auto sentence = [](const std::string& text) {
    const auto read = read_submissions(text, "auto", {});
    return read ? "" : read.error().front().sentence;
  };
  EXPECT_EQ(sentence("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {}}\n"),
            "apiVersion: 'batch/v1'; a Job of Carve has carve.dev/v1");
  for (const char* kind : {"Queue", "Pool", "Node", "Job", "Tariff", "Budget", "RayCluster"})
    EXPECT_EQ(sentence(fmt::format("kind: {}\nmetadata: {{name: a}}\n", kind)),
              fmt::format("apiVersion: it is absent; a {} of Carve has carve.dev/v1", kind));
}

TEST(Submission, a_service_of_a_cluster_gives_its_port_to_the_workload_of_its_name) {
  const std::string deployment =
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: "
      "[{command: [serve]}]}}}\n";
  const auto address = [](const char* name) {
    return fmt::format(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {}}}\nspec: {{ports: [{{port: "
        "8000}}]}}\n",
        name);
  };
  const auto read = read_submissions(deployment + address("a"), "auto", {});
  ASSERT_TRUE(read) << read.error().front().sentence;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().form.port, 8000u);
  EXPECT_THAT(read->front().spec, HasSubstr(R"("port":8000)"));
  const auto other = read_submissions(deployment + address("b"), "auto", {});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().front().sentence, HasSubstr("the Service 'b' has the name of no Deployment"));
}

TEST(Submission, one_wrong_document_refuses_all_and_says_which) {
  const auto read = read_submissions(std::string(ours) + "---\n" + ours + "---\nkind: Task\n", "auto", {});
  ASSERT_FALSE(read);
  std::string all;
  for (const api::FieldError& e : read.error()) all += e.sentence + "\n";
  EXPECT_THAT(all, HasSubstr("document 3: kind: 'Task' is not a kind; there are Service, Application"));
  EXPECT_FALSE(read_submissions("", "auto", {}));
}

TEST(Submission, a_list_is_its_items) {
  const std::string item = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},
    "spec":{"containers":[{"command":["serve"]}]}})";
  for (const std::string head : {R"("apiVersion":"v1","kind":"List",)", R"("metadata":{"continue":""},)"}) {
    const auto read =
        read_submissions(std::string(ours) + "---\n{" + head + R"("items":[)" + item + "]}", "auto", {});
    ASSERT_TRUE(read) << read.error().front().sentence;
    ASSERT_EQ(read->size(), 2u);
    EXPECT_EQ((*read)[1].metadata.name, "b");
  }
  const auto refused = read_submissions(R"({"items":[5]})", "auto", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().front().sentence, "document 1: items: a list has objects alone");
  EXPECT_EQ(read_submissions(R"({"items":[]})", "auto", {}).error().front().sentence, "there is no document");
}

TEST(Submission, a_document_of_ours_without_its_kind_is_none_of_pai_eas) {
  const auto read = read_submissions("metadata: {name: a}\nspec: {replicas: 1}\n", "auto", {});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().front().sentence, HasSubstr("kind: it is absent; there are Service, Application"));
}

TEST(Submission, a_document_of_another_system_is_kept_byte_for_byte) {
  const std::string manifest =
      "# For the night.\napiVersion: v1\nkind: Pod\nmetadata: {name: b}   # a comment\n"
      "spec: {containers: [{command: [serve]}]}\n";
  const auto read =
      read_submissions(std::string(ours) + "---\n" + manifest + "--- \n" + eas + "\n", "auto", {});
  ASSERT_TRUE(read) << read.error().front().sentence;
  EXPECT_EQ((*read)[0].form.source.document, "");
  EXPECT_EQ((*read)[1].form.source.document, manifest);
  EXPECT_THAT((*read)[1].spec, HasSubstr("# For the night.\\napiVersion"));
  EXPECT_EQ((*read)[2].form.source.document, eas);
  EXPECT_EQ(fronts::json_of(manifest).front(), '{');
}

TEST(Submission, an_unknown_field_hides_no_other_error) {
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
      << "the command of a run that could not be read is not missed";
  EXPECT_THAT(
      fields("apiVersion: carve.dev/v1\nkind: Application\nmetadata: {name: a}\n"
             "spec: {gpus: 1, gpu: {type: mGPU, memory: 256, compute: '1.5'}, run: {command: [serve]}}\n"),
      UnorderedElementsAre("spec.gpus", "spec.gpu.memory", "spec.gpu.compute"));
  EXPECT_THAT(
      fields("apiVersion: carve.dev/v1\nkind: Pool\nmetadata: {name: p}\nspec: {typ: eas, type: x}\n"),
      UnorderedElementsAre("spec.typ", "spec.type"));
}

TEST(Submission, applications_and_manifests_run_as_services) {
  const auto read = read_submissions(
      "apiVersion: carve.dev/v1\nkind: Application\nmetadata: {name: a}\n"
      "spec: {gpu: {type: mGPU, memory: 4096, compute: 0.30}, run: {command: [serve]}}\n"
      "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: b}\nspec: {replicas: 3, template: "
      "{spec: {containers: [{command: [serve], resources: {limits: {aliyun.com/gpu-mem: 16}}}]}}}\n",
      "auto", {});
  ASSERT_TRUE(read) << read.error().front().sentence;
  EXPECT_EQ((*read)[0].kind, objects::Kind::application);
  EXPECT_THAT((*read)[0].spec, HasSubstr(R"("compute":"0.30")"));
  EXPECT_EQ((*read)[0].form.gpu->share, "30%");
  EXPECT_EQ((*read)[1].kind, objects::Kind::service);
  EXPECT_EQ((*read)[1].form.replicas, 3u);
  EXPECT_EQ((*read)[1].form.gpu->memory, "16 units");
  EXPECT_EQ((*read)[1].form.source.dialect, "ack");
}

}  // namespace
}  // namespace carve::controller
