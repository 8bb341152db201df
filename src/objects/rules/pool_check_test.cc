#include "objects/rules/pool_check.h"

#include <gmock/gmock.h>

#include "dialects/label_synonyms.h"

namespace carve::objects {
namespace {

using testing::HasSubstr;

TEST(PoolCheck, accepts_the_type_names_of_the_pai_eas_console) {
  for (const auto& [given, type] : {std::pair{"EAS Resource Group", "eas"},
                                    {"Resource Quota", "lingjun"},
                                    {"Lingjun Resource Quota", "lingjun"},
                                    {"Public Resource Group", "public"},
                                    {"ecs", "ecs"}}) {
    const auto pool = read_pool(fmt::format(
        R"({{"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{{"name":"p"}},"spec":{{"type":"{}"}}}})",
        given));
    ASSERT_TRUE(pool) << given << pool.error().front().message;
    EXPECT_EQ(text(pool->spec.type), type);
  }
}

TEST(Labels, of_other_systems_are_translated) {
  const struct {
    const char *key, *value, *ours, *word;
  } rows[] = {
      {"vke.volcengine.com/mgpu-compute-policy", "native-burst-share", "carve.dev/compute-policy",
       "native-burst-share"},
      {"ack.node.gpu.schedule", "share", "carve.dev/mode", "none"},
      {"ack.node.gpu.schedule", "cgpu", "carve.dev/mode", "memory"},
      {"ack.node.gpu.schedule", "core_mem", "carve.dev/mode", "memory-and-compute"},
      {"ack.node.gpu.schedule", "default", "carve.dev/mode", "exclusive"},
      {"vke.node.gpu.schedule", "mgpu", "carve.dev/mode", "memory-and-compute"},
      {"vke.node.gpu.schedule", "nvidia", "carve.dev/mode", "exclusive"},
      {"ack.node.gpu.placement", "spread", "carve.dev/placement", "spread"},
      {"gpuMemoryUnit", "128MiB", "carve.dev/memory-unit", "128MiB"},
      {"zone", "a", "zone", "a"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(dialects::our_key(row.key), row.ours);
    ASSERT_TRUE(dialects::our_value(row.key, row.value)) << row.key;
    EXPECT_EQ(*dialects::our_value(row.key, row.value), row.word);
  }
}

TEST(Labels, an_invalid_value_is_reported_under_the_users_key) {
  EXPECT_EQ(dialects::our_value("gpuMemoryUnit", "64MiB").error(),
            "gpuMemoryUnit 64MiB: must be 1GiB or 128MiB");
  EXPECT_EQ(dialects::our_value("carve.dev/memory-unit", "").error(),
            "carve.dev/memory-unit : must be 1GiB or 128MiB");
  EXPECT_EQ(dialects::our_value("ack.node.gpu.schedule", "memory").error(),
            "ack.node.gpu.schedule 'memory': must be one of share, cgpu, core_mem, default");
  EXPECT_EQ(dialects::our_value("vke.volcengine.com/mgpu-compute-policy", "x").error(),
            "vke.volcengine.com/mgpu-compute-policy 'x': must be one of fixed-share, guaranteed-burst-share, "
            "native-burst-share");
  EXPECT_FALSE(dialects::our_value(std::string(1000, 'k'), "v"));
  EXPECT_FALSE(dialects::our_value("", "v"));
}

TEST(Labels, synonyms_must_not_have_different_values) {
  EXPECT_TRUE(
      dialects::our_labels({{"ack.node.gpu.schedule", "cgpu"}, {"carve.dev/mode", "memory"}}, "spec.labels"));
  const auto wrong = dialects::our_labels(
      {{"ack.node.gpu.schedule", "cgpu"}, {"carve.dev/mode", "none"}, {"gpuMemoryUnit", "1"}}, "spec.labels");
  ASSERT_FALSE(wrong);
  ASSERT_EQ(wrong.error().size(), 2u);
  EXPECT_THAT(wrong.error()[0].message,
              HasSubstr("ack.node.gpu.schedule and carve.dev/mode are synonyms but have different values"));
  EXPECT_EQ(wrong.error()[1].field, "spec.labels.gpuMemoryUnit");
}

TEST(Pools, all_errors_of_a_document_are_reported_together) {
  const auto wrong = read_pool(R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"P!"},
      "spec":{"type":"x","bestEffort":"no","labels":{"gpuMemoryUnit":"64MiB"},
              "taints":[{"key":"","value":"","effect":"Never"}]}})");
  ASSERT_FALSE(wrong);
  std::vector<std::string> fields;
  for (const auto& error : wrong.error()) fields.push_back(error.field);
  EXPECT_EQ(fields,
            (std::vector<std::string>{"metadata.name", "spec.type", "spec.bestEffort", "spec.taints[0]",
                                      "spec.taints[0].effect", "spec.labels.gpuMemoryUnit"}));
  EXPECT_EQ(
      wrong.error()[1].message,
      "spec.type: 'x' is not one of eas, lingjun, public, ecs, vci, EAS Resource Group and Resource Quota");
}

TEST(Pools, have_labels_in_carves_terms) {
  const auto pool = read_pool(R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},
      "spec":{"type":"public","labelSync":true,"labels":{"ack.node.gpu.schedule":"share"},
              "taints":[{"key":"gpu","value":"a10","effect":"NoSchedule"}]}})");
  ASSERT_TRUE(pool) << pool.error().front().message;
  const workload::NodePool made = node_pool("p", pool->spec);
  EXPECT_EQ(made.type, PoolType::public_group);
  EXPECT_EQ(made.labels.at("carve.dev/mode"), "none");
  EXPECT_TRUE(made.synchronises_labels);
  EXPECT_EQ(made.taints.size(), 1u);
}

}  // namespace
}  // namespace carve::objects
