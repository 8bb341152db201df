#include "dialects/eas/eas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/rules/service_terms.h"
#include "wire/api/json_value.h"

namespace carve::dialects {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the fields of a service that differ from the defaults.
std::string summary(const objects::Service& service) {
  const objects::ServiceSpec& spec = service.spec;
  std::string out = fmt::format("{} x{}", service.metadata.name, spec.replicas);
  const auto add = [&](const char* name, const std::string& text, const std::string& usual = "") {
    if (text != usual) out += fmt::format(" {}={}", name, text);
  };
  add("pool", spec.pool);
  if (spec.gpu) {
    add("memory", spec.gpu->memory);
    add("share", spec.gpu->share);
    add("policy", spec.gpu->policy);
    add("isolation", spec.gpu->isolation);
    if (spec.gpu->exclusive) add("whole", fmt::format("{}", spec.gpu->devices));
  }
  add("cpu", spec.cpu.request + "/" + spec.cpu.limit, "/");
  add("ram", spec.memory.request + "/" + spec.memory.limit, "/");
  add("image", spec.run.image);
  add("run", fmt::format("{}", fmt::join(spec.run.command, "|")), "/bin/sh|-c|serve");
  for (const auto& [name, value] : spec.run.env) add("env", name + ":" + value);
  if (spec.port) add("port", fmt::format("{}", *spec.port));
  add("update", fmt::format("{}/{}", spec.update.max_surge, spec.update.max_unavailable), "1/0");
  if (const auto& by = spec.autoscale)
    add("scale", fmt::format("{}-{} by {} {}", by->min, by->max, by->target, text(by->metric)));
  add("grace", fmt::format("{}", spec.termination_grace_period_seconds), "30");
  return out;
}

// Returns a document with these members of metadata in addition to the name, and these members next to
// metadata.
std::string document(const std::string& metadata, const std::string& others = "") {
  return fmt::format(R"({{"metadata": {{"name": "a"{}{}}}, {}{}"containers": [{{"command": "serve"}}]}})",
                     metadata.empty() ? "" : ", ", metadata, others, others.empty() ? "" : ", ");
}
const std::string slice = R"("gpu_memory": 20)";
std::string of_type(const std::string& type) {
  return fmt::format(R"("cloud": {{"computing": {{"instances": [{{"type": "{}"}}]}}}})", type);
}

TEST(Eas, each_field_is_translated) {
  const struct {
    std::string json;
    std::vector<std::string> pool_types;
    const char* result;
    std::vector<std::string> warnings = {};
  } rows[] = {
      {document(""), {}, "a x1"},
      // The unit of gpu_memory.
      {document(slice, of_type("ml.gu7i.c8m30.1-gu30")), {}, "a x1 memory=20GB"},
      {document(slice, of_type("ecs.gn7i-c8g1.2xlarge")), {}, "a x1 memory=20GiB"},
      {document(slice, of_type("other")), {}, "a x1 memory=20GiB"},
      {document(slice, R"("cloud": {"computing": {"instance_type": "ml.x"}})"), {}, "a x1 memory=20GB"},
      {document(slice), {}, "a x1 memory=20GiB"},
      {document(slice), {"ml.a", "ml.b"}, "a x1 memory=20GB"},
      {document(slice), {"ecs.a"}, "a x1 memory=20GiB"},
      {document(slice), {"local"}, "a x1 memory=20GiB"},
      {document(slice, of_type("ml.a")), {"", "ml.b"}, "a x1 memory=20GB"},
      {document(slice, of_type("ecs.a")), {"ecs.b", "local"}, "a x1 memory=20GiB"},
      {document(slice, R"("cloud.computing.instance_type": "ml.x")"), {}, "a x1 memory=20GB"},
      {document(slice, R"("cloud.computing": {"instance_type": "ml.x"})"), {}, "a x1 memory=20GB"},
      {document(slice, R"("cloud": {"computing.instances": [{"type": "ml.x"}]})"), {}, "a x1 memory=20GB"},
      {R"({"name": "a", "metadata.gpu_memory": 20, "metadata.instance": 2, "containers": [{"command": "serve"}]})",
       {},
       "a x2 memory=20GiB"},
      {R"({"metadata.name": "a", "metadata": {"gpu_memory": 20}, "metadata.resource": "p", "metadata.gpu_memory": 5,
           "containers": [{"command": "serve"}]})",
       {},
       "a x1 pool=p memory=20GiB",
       {"metadata.gpu_memory has no effect here"}},
      // Replicas that follow the load.
      {document("", R"("autoscaler": {"min": 2, "max": 5, "strategies": {"gpu": 50}})"),
       {},
       "a x1 scale=2-5 by 50 gpuUtilization"},
      {R"({"name": "a", "metadata": {"autoscaler": {"max": "3", "strategies": {"qps": "10"}, "behavior": 1}},
           "containers": [{"command": "serve", "port": 8000}]})",
       {},
       "a x1 port=8000 scale=1-3 by 10 qps",
       {"metadata.autoscaler.behavior has no effect here"}},
      {document(""), {"ecs.a", "ml.a"}, "a x1"},
      // Compute.
      {document(slice + R"(, "gpu_core_percentage": 5)"),
       {},
       "a x1 memory=20GiB share=5% policy=fixed-share"},
      {document(slice + R"(, "gpu_core_percentage": 100)"),
       {},
       "a x1 memory=20GiB share=100% policy=fixed-share"},
      {document(R"("gpu_core_percentage": 5)"),
       {},
       "a x1",
       {"gpu_core_percentage is ignored without gpu_memory"}},
      {document(R"("gpu": 0, "gpu_core_percentage": 5)"),
       {},
       "a x1",
       {"gpu_core_percentage is ignored without gpu_memory"}},
      // Whole devices.
      {document(R"("gpu": 0)"), {}, "a x1"},
      // Numbers as texts or with a fraction of 0.
      {document(R"("gpu_memory": "20", "gpu_core_percentage": "5", "gpu": "0", "instance": "2")"),
       {},
       "a x2 memory=20GiB share=5% policy=fixed-share"},
      {document(R"("gpu_memory": 20.0, "cpu": "4.0", "rolling_strategy": {"max_surge": "2"})"),
       {},
       "a x1 memory=20GiB cpu=4/4 update=2/0"},
      {document(R"("gpu": 1)"), {}, "a x1 whole=1"},
      {document(R"("gpu": 0, )" + slice), {}, "a x1 memory=20GiB"},
      {document(R"("gpu": 1, "gpu_core_percentage": 5, )" + slice),
       {"ecs.a", "ml.a"},
       "a x1 whole=1",
       {"gpu is 1, so the instance gets the whole device; gpu_memory and gpu_core_percentage are ignored"}},
      {document(R"("gpu": 2, "gpu_core_percentage": 500)"),
       {},
       "a x1 whole=2",
       {"gpu is 2, so the instance gets 2 whole devices; gpu_memory and gpu_core_percentage are ignored"}},
      // Instances, pool, CPU, memory, update.
      {document(R"("instance": 64, "resource": "eas-r-1", "cpu": 4, "memory": 8000)"),
       {},
       "a x64 pool=eas-r-1 cpu=4/4 ram=8000MB/8000MB"},
      {document(R"("rolling_strategy": {"max_surge": 2, "max_unavailable": 1})"), {}, "a x1 update=2/1"},
      {document(R"("rolling_strategy.max_surge": 2, "eas.termination_grace_period": 60)"),
       {},
       "a x1 update=2/0 grace=60"},
      {document(R"("eas": {"termination_grace_period": 0}, "eas.termination_grace_period": 60)"),
       {},
       "a x1 grace=0",
       {"metadata.eas.termination_grace_period has no effect here"}},
      {document(R"("instance": 10, "rolling_strategy": {"max_surge": "25%", "max_unavailable": "25%"})"),
       {},
       "a x10 update=3/2"},
      {document(R"("rolling_strategy": {"max_surge": 0})"), {}, "a x1 update=0/1"},
      {document(R"("rolling_strategy": {"max_surge": 0, "max_unavailable": "2%"})"), {}, "a x1 update=0/1"},
      // Programs and images.
      {R"({"name": "My_Model_2", "containers": [{"image": "r/i:1", "port": 8000}]})",
       {},
       "my-model-2 x1 image=r/i:1 run= port=8000"},
      {R"({"metadata": {"name": "a"}, "containers": [{"script": "a\nb", "command": "", "env": [{"name": "A", "value": "1"}, {"name": "B"}]}]})",
       {},
       "a x1 run=/bin/sh|-c|a\nb env=A:1 env=B:"},
      // Fields without effect.
      {document(R"("rpc": {"keepalive": 5}, "workspace_id": 1)",
                R"("processor": "pmml", "model_path": "oss://a")"),
       {},
       "a x1",
       {"metadata.rpc has no effect here", "metadata.workspace_id has no effect here",
        "processor has no effect here", "model_path has no effect here"}},
      {R"({"name": "a", "containers": [{"command": "serve", "prepare": {}, "env": [{"name": "A", "value": "", "x": 1}]}, {"image": "b"}],
           "cloud": {"networking": {}, "computing": {"instances": [{"type": "ml.a", "capacity": 1}, {"type": "ecs.a"}]}}})",
       {},
       "a x1 env=A:",
       {"containers[0].prepare has no effect here", "containers[0].env[0].x has no effect here",
        "containers[1] has no effect here", "cloud.networking has no effect here",
        "cloud.computing.instances[0].capacity has no effect here",
        "cloud.computing.instances[1] has no effect here"}},
  };
  for (const auto& row : rows) {
    const auto eas = from_eas(row.json, {.pool_instance_types = row.pool_types});
    ASSERT_TRUE(eas) << row.json << ": " << eas.error().front().message;
    EXPECT_EQ(summary(eas->service), row.result) << row.json;
    EXPECT_EQ(eas->warnings, row.warnings) << row.json;
    EXPECT_EQ(eas->service.spec.source.dialect, "eas");
    EXPECT_EQ(eas->service.spec.source.document, row.json);
    EXPECT_EQ(objects::check(eas->service), api::FieldErrors{});
  }
}

TEST(Eas, each_error_reports_its_field) {
  const struct {
    std::string json;
    EasContext context;
    const char* field;
    const char* message;
  } rows[] = {
      {document(R"("gpu_memory": 1.5)"),
       {},
       "metadata.gpu_memory",
       "metadata.gpu_memory: 1.5 is not a whole number of at least 1"},
      {document(R"("gpu_memory": 0)"), {}, "metadata.gpu_memory", "0 is not a whole number of at least 1"},
      {document(R"("gpu_memory": -1)"), {}, "metadata.gpu_memory", "-1 is not a whole number of at least 1"},
      {document(R"("gpu_memory": "")"),
       {},
       "metadata.gpu_memory",
       "\"\" is not a whole number of at least 1"},
      {document(R"("gpu_memory": "abc")"),
       {},
       "metadata.gpu_memory",
       "\"abc\" is not a whole number of at least 1"},
      {document(R"("gpu_memory": null)"),
       {},
       "metadata.gpu_memory",
       "null is not a whole number of at least 1"},
      {document(R"("gpu_memory": 18446744073709551615)"),
       {},
       "metadata.gpu_memory",
       "is more than any device has"},
      {document(slice + R"(, "gpu_core_percentage": 101)"),
       {},
       "metadata.gpu_core_percentage",
       "metadata.gpu_core_percentage: 101 is not a whole number from 1 to 100"},
      {document(slice + R"(, "gpu_core_percentage": 0)"), {}, "metadata.gpu_core_percentage", "0 is not"},
      {document(slice + R"(, "gpu_core_percentage": 5.5)"), {}, "metadata.gpu_core_percentage", "5.5 is not"},
      {document(R"("gpu": 17)"), {}, "metadata.gpu", "17 is not a whole number from 0 to 16"},
      {document(slice, of_type("ml.x")),
       {.pool_instance_types = {"ecs.b"}},
       "cloud.computing.instances[0].type",
       "'ml.x': the controller has a node of type ecs.b, on which gpu_memory would be in GiB; set "
       "metadata.resource to a pool whose nodes are all ml.*"},
      {document(slice + R"(, "resource": "p")", R"("cloud.computing.instance_type": "ecs.x")"),
       {.pool_instance_types = {"ecs.a", "ml.b"}},
       "cloud.computing.instance_type",
       "'ecs.x': pool p has a node of type ml.b, on which gpu_memory would be in GB"},
      {document("", R"("autoscaler": {"min": 0, "max": 5, "strategies": {"gpu": 50}})"),
       {},
       "autoscaler.min",
       "0: services cannot be scaled to 0 instances; set min to 1, or stop the service with carve eas "
       "stop"},
      {document("", R"("autoscaler": {"min": 1, "max": 5, "strategies": {"qps": 10}})"),
       {},
       "autoscaler.strategies.qps",
       "requires a port of the service; add containers[0].port"},
      {document("", R"("autoscaler": {"min": 1, "max": 5, "strategies": {"cpu": 10}})"),
       {},
       "autoscaler.strategies",
       "one of qps, concurrency and gpu is required"},
      {document("", R"("autoscaler": {"min": 5, "max": 2, "strategies": {"gpu": 10}})"),
       {},
       "autoscaler.max",
       "2 is less than min, 5"},
      {document("", R"("autoscaler": {"min": 1, "strategies": {"gpu": 10}})"),
       {},
       "autoscaler.max",
       "is required"},
      {document("", R"("autoscaler": {"max": 2, "strategies": {"gpu": 10, "concurrency": 3}})"),
       {},
       "autoscaler.strategies.concurrency",
       "only one metric may be used for scaling; keep one of them"},
      {document(R"("gpu_memory": "1.5")"), {}, "metadata.gpu_memory", "\"1.5\" is not a whole number"},
      {document(R"("gpu_memory": "4GB")"), {}, "metadata.gpu_memory", "\"4GB\" is not a whole number"},
      {document(R"("gpu_memory": "4.")"), {}, "metadata.gpu_memory", "\"4.\" is not a whole number"},
      {document(R"("gpu_memory": ".0")"), {}, "metadata.gpu_memory", "\".0\" is not a whole number"},
      {document(R"("gpu_memory": "-4")"), {}, "metadata.gpu_memory", "\"-4\" is not a whole number"},
      {document(R"("gpu_memory": true)"), {}, "metadata.gpu_memory", "true is not a whole number"},
      {document(R"("gpu": 0.5)"), {}, "metadata.gpu", "0.5 is not a whole number from 0 to 16"},
      {document(slice + R"(, "resource": "p")"),
       {.pool_instance_types = {"ml.a", "ecs.b"}},
       "metadata.gpu_memory",
       "pool p has ml.* and ecs.* nodes: gpu_memory would be in GB on one and in GiB on the other; set "
       "metadata.resource to a pool of one kind"},
      {document(slice),
       {.pool_instance_types = {"", "ml.a"}},
       "metadata.gpu_memory",
       "the controller has ml.* and other nodes"},
      {document(slice + R"(, "resource": "p")"), {.largest_usable_bytes = 20ull << 30 | 1}, "", ""},
      {document(R"("gpu_memory": 80, "resource": "p")"),
       {.largest_usable_bytes = 22731ull << 20},
       "metadata.gpu_memory",
       "metadata.gpu_memory: 80 GiB is more than the 22731 MiB that are usable on the largest device of pool "
       "p; request at most 22 GiB"},
      {document(R"("instance": 0)"), {}, "metadata.instance", "0 is not a whole number from 1 to 64"},
      {document(R"("instance": 65)"), {}, "metadata.instance", "65 is not a whole number from 1 to 64"},
      {document(R"("resource": "a b")"), {}, "metadata.resource", "'a b' is not a valid node pool name"},
      {document(R"("cpu": "4c")"), {}, "metadata.cpu", "\"4c\" is not a whole number"},
      {document(R"("memory": 0)"), {}, "metadata.memory", "0 is not a whole number"},
      {document(R"("rolling_strategy": {"max_surge": 0, "max_unavailable": 0})"),
       {},
       "metadata.rolling_strategy",
       "both 0"},
      {document(R"("rolling_strategy": {"max_surge": "2.505%"})"),
       {},
       "metadata.rolling_strategy.max_surge",
       "'2.505%' is not"},
      {document(R"("rolling_strategy": 5)"), {}, "metadata.rolling_strategy", "5 is not an object"},
      {document(R"("eas": {"termination_grace_period": -1})"),
       {},
       "metadata.eas.termination_grace_period",
       "-1 is not"},
      {R"({"containers": [{"command": "x"}]})", {}, "metadata.name", "the service has no name"},
      {R"({"metadata": {"name": "a-b"}, "containers": [{"command": "x"}]})",
       {},
       "metadata.name",
       "'a-b' is not a valid name"},
      {R"({"metadata": {"name": "_a"}, "containers": [{"command": "x"}]})",
       {},
       "metadata.name",
       "'_a' is not a valid name"},
      {R"({"metadata": {"name": 5}, "containers": [{"command": "x"}]})",
       {},
       "metadata.name",
       "5 is not a string"},
      {R"({"name": "a"})",
       {},
       "containers[0].command",
       "there is nothing to run; add command, script or image"},
      {R"({"name": "a", "processor": "pmml"})",
       {},
       "containers[0].command",
       "(a processor has no effect here)"},
      {R"({"name": "a", "containers": [{}]})", {}, "containers[0].command", "there is nothing to run"},
      {R"({"name": "a", "containers": [{"command": ["x"]}]})",
       {},
       "containers[0].command",
       "[\"x\"] is not a string"},
      {R"({"name": "a", "containers": [{"command": "x", "script": "y"}]})",
       {},
       "containers[0].script",
       "also has a command"},
      {R"({"name": "a", "containers": [{"command": "x", "port": 65536}]})",
       {},
       "containers[0].port",
       "65536 is not"},
      {R"({"name": "a", "containers": [{"command": "x", "env": {}}]})",
       {},
       "containers[0].env",
       "{} is not a list"},
      {R"({"name": "a", "containers": [{"command": "x", "env": [{"name": "A=", "value": ""}]}]})",
       {},
       "containers[0].env[0].name",
       "not be empty or contain ="},
      {R"({"name": "a", "containers": [{"command": "x", "env": [{"name": "A", "value": 1}]}]})",
       {},
       "containers[0].env[0].value",
       "1 is not a string; write it in quotes"},
      {R"({"name": "a", "containers": [{"command": "x", "env": [{"name": "A"}, {"name": "A"}]}]})",
       {},
       "containers[0].env[1].name",
       "occurs twice"},
      {R"({"name": "a", "name": "b"})", {}, "", "name: the key occurs twice"},
      {"[]", {}, "", "must be a JSON object"},
      {"{", {}, "", "not JSON"},
  };
  for (const auto& row : rows) {
    const auto eas = from_eas(row.json, row.context);
    if (*row.message == '\0') {
      EXPECT_TRUE(eas) << row.json;
      continue;
    }
    ASSERT_FALSE(eas) << row.json;
    EXPECT_EQ(eas.error().size(), 1u) << row.json;
    EXPECT_EQ(eas.error().front().field, row.field) << row.json;
    EXPECT_THAT(eas.error().front().message, HasSubstr(row.message)) << row.json;
  }
}

TEST(Eas, all_errors_are_returned_together) {
  const auto eas =
      from_eas(R"({"metadata": {"instance": 0, "gpu_memory": 1.5, "gpu_core_percentage": 0}})", {});
  ASSERT_FALSE(eas);
  std::vector<std::string> fields;
  for (const api::FieldError& error : eas.error()) fields.push_back(error.field);
  EXPECT_THAT(fields, ElementsAre("metadata.name", "metadata.instance", "metadata.gpu_memory",
                                  "metadata.gpu_core_percentage", "containers[0].command"));
}

TEST(Eas, keeps_the_original_name) {
  const auto eas = from_eas(R"({"metadata": {"name": "My_Model"}, "containers": [{"image": "i"}]})", {});
  ASSERT_TRUE(eas);
  EXPECT_EQ(eas->service.metadata.name, "my-model");
  EXPECT_EQ(eas->service.metadata.annotations.at(eas_name_annotation), "My_Model");
}

TEST(Eas, slice_sizes_are_exact_to_the_byte) {
  const auto bytes = [](const std::string& type) {
    return objects::terms_of(from_eas(document(slice, of_type(type)), {})->service.spec)->gpu->memory_bytes;
  };
  EXPECT_EQ(bytes("ml.x"), 20'000'000'000u);
  EXPECT_EQ(bytes("ecs.x"), 21'474'836'480u);
}

TEST(Eas, distinguishes_eas_documents_from_other_documents) {
  EXPECT_TRUE(is_eas(R"({"metadata": {"name": "a"}})"));
  EXPECT_FALSE(is_eas(R"({"kind": "Service"})"));
  EXPECT_FALSE(is_eas(R"({"apiVersion": "carve.dev/v1"})"));
  EXPECT_FALSE(is_eas(R"({"metadata": {"name": "a"}, "spec": {}})")) << "a Carve document without its kind";
  EXPECT_FALSE(is_eas("[]"));
  EXPECT_FALSE(is_eas("{"));
  EXPECT_EQ(eas_pool(document(R"("resource": "p")")), "p");
  EXPECT_EQ(eas_pool(R"({"metadata": 5})"), "");
  EXPECT_EQ(eas_pool("[]"), "");
  EXPECT_EQ(eas_pool("{"), "");
}

TEST(EasModify, sets_values_at_their_paths) {
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{}, R"({"metadata":{"name":"a","instance":1},"c":[{"port":1}]})"},
      {{"metadata.instance=2", "metadata.name=b"},
       R"({"metadata":{"name":"b","instance":2},"c":[{"port":1}]})"},
      {{"c[0].port=8000", "c[1].image=r/i:1=x"},
       R"({"metadata":{"name":"a","instance":1},"c":[{"port":8000},{"image":"r/i:1=x"}]})"},
      {{"x.y.z=true", "metadata={}"}, R"({"metadata":{},"c":[{"port":1}],"x":{"y":{"z":true}}})"},
      {{"metadata.name=\"5\"", "c=[1.5, null]"}, R"({"metadata":{"name":"5","instance":1},"c":[1.5,null]})"},
      {{"c[0].command="}, R"({"metadata":{"name":"a","instance":1},"c":[{"port":1,"command":""}]})"},
  };
  for (const auto& [overrides, result] : rows) {
    const auto text =
        modified(R"({"metadata": {"name": "a", "instance": 1}, "c": [{"port": 1}]})", overrides);
    ASSERT_TRUE(text) << text.error().front().message;
    EXPECT_EQ(api::parse(*text)->dump(), result);
  }
}

TEST(EasModify, rejects_paths_that_do_not_exist) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  const std::pair<std::string, const char*> rows[] = {
      {"metadata.instance", "-D'metadata.instance': must be PATH=VALUE; try metadata.instance=2"},
      {"=2", "must be PATH=VALUE"},
      {"a.=2", "must be PATH=VALUE"},
      {"a..b=2", "must be PATH=VALUE"},
      {"a[x]=2", "must be PATH=VALUE"},
      {"a[0=2", "must be PATH=VALUE"},
      {"a[0]b=2", "must be PATH=VALUE"},
      {deep + "=2", "must be PATH=VALUE"},
      {"name.x=2", "name is not an object"},
      {"name[0]=2", "name is not a list"},
      {"c.x=2", "c is a list of length 1; its first item is c[0]"},
      {"c[2]=2", "c is a list of length 1; the next index is 1"},
  };
  for (const auto& [change, message] : rows) {
    const auto text = modified(R"({"name": "a", "c": [1]})", std::vector{change});
    ASSERT_FALSE(text) << change;
    EXPECT_THAT(text.error().front().message, HasSubstr(message));
  }
  EXPECT_FALSE(modified("{", {}));
}

TEST(EasModify, merges_a_fragment_into_the_document) {
  const char* document =
      R"({"name": "a", "metadata": {"instance": 1, "cpu": 2}, "containers": [{"port": 1}]})";
  const auto out = merged(document, R"({"metadata": {"instance": 3, "cpu": null}})");
  ASSERT_TRUE(out);
  EXPECT_EQ(*api::parse(*out),
            *api::parse(R"({"name": "a", "metadata": {"instance": 3}, "containers": [{"port": 1}]})"));
  EXPECT_FALSE(merged(document, "[]"));
  const auto flat =
      merged(R"({"metadata": {"instance": 1, "cpu": 2}, "metadata.gpu": 1})",
             R"({"metadata.instance": 3, "metadata.cpu": null, "metadata.gpu": 2, "metadata.x": 1})");
  ASSERT_TRUE(flat);
  EXPECT_EQ(*api::parse(*flat),
            *api::parse(R"({"metadata": {"instance": 3}, "metadata.gpu": 2, "metadata.x": 1})"));
  const auto renamed = merged(document, R"({"name": "c", "metadata": {"instance": 2}})");
  ASSERT_TRUE(renamed);
  EXPECT_EQ(eas_name(*renamed), "c") << "a fragment for another service is recognized";
  EXPECT_EQ(eas_name(*merged(R"({"metadata.name": "a"})", R"({"metadata": {"name": "d"}})")), "d");
  EXPECT_TRUE(merged(document, R"({"name": "a", "metadata": 5})")) << "the errors are those of the document";
  EXPECT_EQ(eas_name(document), "a");
  EXPECT_EQ(eas_name(R"({"metadata": {"name": "b"}})"), "b");
  EXPECT_EQ(eas_name(R"({"metadata": {}})"), "");
}

TEST(EasModify, a_document_without_a_name_or_containers_is_a_fragment) {
  EXPECT_TRUE(is_whole_eas(R"({"name": "a", "containers": [{"image": "i"}]})"));
  EXPECT_TRUE(is_whole_eas(R"({"metadata": {"name": "a"}, "containers": []})"));
  EXPECT_FALSE(is_whole_eas(R"({"containers": [{"image": "i"}]})"));
  EXPECT_FALSE(is_whole_eas(R"({"name": "a", "metadata": {"instance": 2}})"));
  EXPECT_FALSE(is_whole_eas("[]"));
  EXPECT_FALSE(is_whole_eas("{"));
}

}  // namespace
}  // namespace carve::dialects
