#include "controller/kubernetes/custom_resources.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace carve::controller {
namespace {

using api::Json;
using objects::Kind;

constexpr const char* file_path = DEFINITIONS "/custom-resources.yaml";

Json schema_of(Kind kind) {
  return custom_resource_definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

// Calls `visit` for the schema and for each schema in it.
template <class Visit>
void each_schema(const Json& schema, const std::string& path, const Visit& visit) {
  visit(schema, path);
  if (schema.contains("properties"))
    for (const auto& [name, property] : schema["properties"].items())
      each_schema(property, path + "." + name, visit);
  for (const char* inner : {"items", "additionalProperties"})
    if (schema.contains(inner) && schema[inner].is_object()) each_schema(schema[inner], path + "[]", visit);
}

TEST(CustomResources, are_those_of_the_file_in_deploy) {
  const std::string expected = std::string(custom_resource_head) + custom_resource_definitions();
  if (std::getenv("CARVE_WRITE_PAGES") != nullptr) std::ofstream(file_path) << expected;
  std::ifstream file(file_path);
  const std::string found{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(found == expected) << file_path << " is out of date; run this test with CARVE_WRITE_PAGES=1";
}

TEST(CustomResources, have_structural_schemas) {
  for (const objects::KindText& kind : objects::kinds) {
    if (!is_custom_resource(kind.value)) continue;
    each_schema(
        schema_of(kind.value), std::string(kind.kind), [](const Json& schema, const std::string& path) {
          EXPECT_FALSE(schema.contains("anyOf") || schema.contains("prefixItems")) << path;
          EXPECT_FALSE(schema.contains("properties") && schema.contains("additionalProperties")) << path;
          const bool is_free = schema.contains("x-kubernetes-int-or-string") ||
                               schema.contains("x-kubernetes-preserve-unknown-fields");
          EXPECT_EQ(schema.contains("type"), !is_free) << path;
        });
  }
}

TEST(CustomResources, leave_defaults_to_specs) {
  const Json fields = schema_of(Kind::service)["properties"];
  EXPECT_EQ(fields["spec"]["properties"]["replicas"]["default"], 1);
  each_schema(fields["status"], "status", [](const Json& schema, const std::string& path) {
    EXPECT_FALSE(schema.contains("default")) << path;
  });
}

TEST(CustomResources, have_the_rules_of_the_documents) {
  const Json fields = schema_of(Kind::service)["properties"];
  EXPECT_EQ(fields["spec"]["properties"]["replicas"]["maximum"], 64);
  EXPECT_EQ(fields["metadata"]["properties"]["name"]["maxLength"], 48);
  EXPECT_THAT(fields["spec"]["properties"]["tolerations"]["items"]["properties"]["effect"]["enum"],
              testing::Contains("NoExecute"));
  const Json& run = fields["spec"]["properties"]["run"]["x-kubernetes-validations"];
  ASSERT_EQ(run.size(), 1u);
  EXPECT_EQ(run[0]["message"], "there is nothing to run; add command, image or both");
}

TEST(CustomResources, have_conditions_in_every_status) {
  for (const objects::KindText& kind : objects::kinds) {
    if (!is_custom_resource(kind.value)) continue;
    EXPECT_TRUE(schema_of(kind.value)["properties"]["status"]["properties"].contains("conditions"))
        << kind.kind;
  }
}

TEST(CustomResources, have_short_names_that_are_not_those_of_kubernetes) {
  const std::set<std::string> of_kubernetes = {"svc", "no", "po", "cm", "ns", "pv", "pvc", "rs", "cj", "ev"};
  for (const objects::KindText& kind : objects::kinds) {
    if (!is_custom_resource(kind.value)) continue;
    const std::string name = custom_resource_definition(kind.value)["spec"]["names"]["shortNames"][0];
    EXPECT_FALSE(of_kubernetes.contains(name)) << name;
  }
}

TEST(CustomResources, have_paths_with_a_namespace_unless_they_apply_to_all) {
  EXPECT_EQ(custom_resource_path(Kind::service, "a", "b"), "/apis/carve.dev/v1/namespaces/a/services/b");
  EXPECT_EQ(custom_resource_path(Kind::service), "/apis/carve.dev/v1/services");
  EXPECT_EQ(custom_resource_path(Kind::pool, "a", "b"), "/apis/carve.dev/v1/pools/b");
}

}  // namespace
}  // namespace carve::controller
