#include "fronts/eas/eas.h"

#include <gmock/gmock.h>

#include "fronts/service_terms.h"

namespace carve::fronts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string document(const std::string& metadata, const std::string& rest = "") {
  return R"({"metadata":{"name":"a",)" + metadata + R"(},"containers":[{"command":"serve"}])" + rest + "}";
}

struct Row {
  std::string document;
  std::string memory, share;  // Of the slice; empty: none, or no GPU at all.
  uint32_t whole_devices = 0;
  const char* warning = "";  // Part of the only one.
};

// The table of the documents' meaning, one row a rule.
TEST(Eas, each_rule_gives_its_slice) {
  const Row table[] = {
      {document(R"("gpu_memory":20,"gpu_core_percentage":5)"), "20GiB", "5%"},
      {document(R"("gpu_memory":20)"), "20GiB", ""},
      {document(R"("gpu_memory":20)", R"(,"cloud":{"computing":{"instances":[{"type":"ml.gu7i.c8m30"}]}})"),
       "20GB", ""},
      {document(R"("gpu_memory":20)", R"(,"cloud":{"computing":{"instances":[{"type":"ecs.gn7i"}]}})"),
       "20GiB", ""},
      {document(R"("gpu_core_percentage":5)"), "", "", 0,
       "gpu_core_percentage is ignored: it needs gpu_memory"},
      {document(R"("gpu":1,"gpu_memory":20,"gpu_core_percentage":5)"), "", "", 1,
       "gpu is 1: the instance takes the whole device; gpu_memory and gpu_core_percentage are ignored"},
      {document(R"("gpu":2)"), "", "", 2},
      {document(R"("gpu":0,"gpu_memory":3)"), "3GiB", ""},
      {document(R"("gpu":0)"), "", ""},
      {document(R"("instance":3)"), "", ""},
      {document(R"("rpc":{"keepalive":1})"), "", "", 0, "metadata.rpc: has no effect here"},
      {document(R"("instance":1)", R"(,"processor":"x")"), "", "", 0, "processor: has no effect here"},
  };
  for (const Row& row : table) {
    const auto eas = from_eas(row.document, {});
    ASSERT_TRUE(eas) << row.document << eas.error().front().sentence;
    EXPECT_THAT(check(eas->service), IsEmpty()) << row.document;
    EXPECT_EQ(eas->service.spec.source.document, row.document) << "byte for byte";
    const auto& gpu = eas->service.spec.gpu;
    EXPECT_EQ(gpu.has_value(), !row.memory.empty() || row.whole_devices > 0) << row.document;
    EXPECT_EQ(gpu ? gpu->memory : "", row.memory) << row.document;
    EXPECT_EQ(gpu ? gpu->share : "", row.share) << row.document;
    EXPECT_EQ(gpu ? gpu->policy : "", row.share.empty() ? "" : "fixed-share") << row.document;
    EXPECT_EQ(gpu && gpu->exclusive ? gpu->devices : 0, row.whole_devices) << row.document;
    if (*row.warning == '\0')
      EXPECT_THAT(eas->warnings, IsEmpty()) << row.document;
    else
      EXPECT_THAT(eas->warnings, ElementsAre(HasSubstr(row.warning))) << row.document;
  }
}

TEST(Eas, each_wrong_value_is_refused_with_its_sentence) {
  const std::pair<std::string, const char*> table[] = {
      {document(R"("gpu_memory":1.5)"), "metadata.gpu_memory: 1.5 is not a whole number from 1 up"},
      {document(R"("gpu_memory":0)"), "metadata.gpu_memory: 0 is not a whole number from 1 up"},
      {document(R"("gpu_memory":"20")"), R"(metadata.gpu_memory: "20" is not a whole number from 1 up)"},
      {document(R"("gpu_memory":1,"gpu_core_percentage":101)"),
       "metadata.gpu_core_percentage: 101 is not a whole number from 1 to 100"},
      {document(R"("instance":65)"), "metadata.instance: 65 is not a whole number from 1 to 64"},
      {document(R"("gpu_memory":30)"),
       "metadata.gpu_memory: 30 GiB is more than the largest device has usable, 22731 MiB"},
      {R"({"metadata":{},"containers":[{"command":"x"}]})", "metadata.name: the name is missing"},
      {R"({"metadata":{"name":"-"},"containers":[{"command":"x"}]})", "metadata.name: \"-\" is not a name"},
      {R"({"metadata":{"name":"a"}})", "containers: there is none"},
      {R"({"metadata":{"name":"a"},"containers":[{}]})", "containers[0].command: the command is missing"},
      {R"({"metadata":{"name":"a"},"containers":[{"command":"x","port":0}]})",
       "containers[0].port: 0 is not"},
      {R"({"metadata":{"name":"a"},"containers":[{"command":"x","env":[{"value":"x"}]}]})",
       "containers[0].env[0].name: the name is missing"},
      {R"({"metadata":7,"containers":[{"command":"x"}]})", "metadata: 7 is not an object"},
      {"[]", "the document is not an object"},
      {"{", "the document is not JSON"},
  };
  for (const auto& [text, sentence] : table) {
    const auto eas = from_eas(text, {.largest_usable_bytes = 22731ull << 20});
    ASSERT_FALSE(eas) << text;
    EXPECT_THAT(eas.error().front().sentence, HasSubstr(sentence)) << text;
  }
}

TEST(Eas, a_pool_of_both_kinds_of_nodes_needs_a_type) {
  const EasContext mixed{.pool_instance_types = {"ml.gu7i", "ecs.gn7i"}};
  const auto eas = from_eas(document(R"("gpu_memory":1,"resource":"p")"), mixed);
  ASSERT_FALSE(eas);
  EXPECT_THAT(eas.error().front().sentence,
              HasSubstr("pool p has ml.* and ecs.* nodes: gpu_memory would be GB on one"));
  EXPECT_EQ(
      from_eas(document(R"("gpu_memory":1)"), {.pool_instance_types = {"ml.gu7i"}})->service.spec.gpu->memory,
      "1GB");
}

TEST(Eas, names_become_names_of_slices_and_the_rest_is_carried_over) {
  const auto eas = from_eas(
      R"({"metadata":{"name":"My_Model","instance":4,"cpu":2,"memory":4000,"rolling_strategy":{"max_surge":"50%","max_unavailable":1},
          "eas":{"termination_grace_period":5}},
          "containers":[{"command":"run --port $PORT","port":8000,"env":[{"name":"A","value":"b"}]}]})",
      {});
  ASSERT_TRUE(eas) << eas.error().front().sentence;
  const objects::Service& s = eas->service;
  EXPECT_EQ(s.metadata.name, "my-model");
  EXPECT_EQ(s.metadata.annotations.at(eas_name_annotation), "My_Model");
  EXPECT_EQ(s.spec.replicas, 4u);
  EXPECT_EQ(s.spec.update.max_surge, 2u);
  EXPECT_EQ(s.spec.update.max_unavailable, 1u);
  EXPECT_EQ(s.spec.termination_grace_period_seconds, 5u);
  EXPECT_THAT(s.spec.run.command, ElementsAre("/bin/sh", "-c", "run --port $PORT"));
  EXPECT_EQ(s.spec.run.env.at("A"), "b");
  EXPECT_EQ(terms_of(s.spec)->memory_request_bytes, 4'000'000'000u);
  EXPECT_EQ(terms_of(s.spec)->cpu_request_milli, 2000u);
}

TEST(Eas, a_field_of_the_stored_document_is_changed_by_its_path) {
  EXPECT_EQ(
      *modified(R"({"metadata":{"name":"a","instance":1}})", {"metadata.instance=2", "metadata.rpc.batch=x"}),
      R"({"metadata":{"name":"a","instance":2,"rpc":{"batch":"x"}}})");
  EXPECT_THAT(modified("{}", {"metadata"}).error(), HasSubstr("is not FIELD=VALUE"));
  EXPECT_THAT(modified(R"({"metadata":1})", {"metadata.instance=2"}).error(),
              HasSubstr("metadata is not an object"));
}

}  // namespace
}  // namespace carve::fronts
