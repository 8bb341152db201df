// Tests the fields that `carve explain` prints, and the JSON Schemas.
#include "cli/field_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/application.h"
#include "objects/budget_object.h"
#include "objects/job_object.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"
#include "objects/service_object.h"
#include "objects/tariff_object.h"
#include "wire/api/json_schema.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* page = R"(# Fields

Text before the first kind.

## Service

Equal `replicas` of [one](page.md) program.

### ServiceSpec

| field | type | default | meaning |
|---|---|---|---|
| `gpu` | [Gpu](#gpu) |  | A part; "a \| b" or `c`. |
| `parts` | list of [Gpu](#gpu) |  | See [ray.md](ray.md). |
| `replicas` | integer | `1` | Number. |

### Gpu

What each replica gets.

| field | type | default | meaning |
|---|---|---|---|
| `memory` | string | `4GiB` | Per device. |
| `at` | list of integer | `[50, 80]` | Percent. |

`status`: [JobStatus](#jobstatus).

## Structures

### JobStatus

| field | type | meaning |
|---|---|---|
| `phase` | string | State. |
)";

TEST(FieldDocs, parses_the_page) {
  const FieldDocs docs = parse_fields_page(page);
  EXPECT_EQ(docs.kinds.at("Service"), "Equal replicas of one program.");
  EXPECT_EQ(docs.structures.at("Gpu").about, "What each replica gets.");
  const auto& fields = docs.structures.at("ServiceSpec").fields;
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_EQ(fields[0].type, "Gpu");
  EXPECT_EQ(fields[0].meaning, "A part; \"a | b\" or c.");
  EXPECT_TRUE(fields[1].is_list);
  EXPECT_EQ(fields[1].meaning, "See ray.md.");
  EXPECT_EQ(fields[2].otherwise, "1");
  EXPECT_EQ(docs.status_types.at("Service"), "JobStatus");
}

TEST(FieldDocs, ignores_lines_of_other_forms) {
  EXPECT_TRUE(parse_fields_page("").structures.empty());
  for (const char* text : {"| `a` |", "### A\n| `a`", "### A\n| `a` | b", "## \n### \n| ` | | | |",
                           "`status`: [", "[](", "### A\n[x](", "\\|"})
    EXPECT_TRUE(parse_fields_page(text).kinds.empty()) << text;
}

TEST(FieldDocs, finds_fields_by_their_paths) {
  const FieldDocs docs = parse_fields_page(page);
  const auto found = find_field(docs, "svc.spec.parts[0].memory");
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->path, "spec.parts.memory");
  EXPECT_EQ(found->field.otherwise, "4GiB");
  EXPECT_EQ(find_field(docs, "services.status.phase")->field.meaning, "State.");
  for (const auto& [path, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"servic", "'servic' is not a kind; did you mean 'services'?"},
           {"", "'' is not a kind"},
           {"service.spec.gup",
            "service.spec: has no field 'gup'; did you mean 'gpu'? its fields are gpu, parts, replicas"},
           {"service.", "service: has no field ''; its fields are apiVersion, kind, metadata, spec, status"},
           {"service..spec", "service: has no field ''"},
           {"service.spec.replicas.x", "service.spec.replicas: has no fields; it is a integer"}}) {
    const auto refused = find_field(docs, path);
    ASSERT_FALSE(refused) << path;
    EXPECT_THAT(refused.error(), StartsWith(message)) << path;
  }
}

TEST(FieldDocs, explains_a_field_and_its_fields) {
  const FieldDocs docs = parse_fields_page(page);
  EXPECT_EQ(explained(docs, find_field(docs, "service.spec.gpu").value(), Depth::one_level),
            "KIND:     Service\nVERSION:  carve.dev/v1\nFIELD:    spec.gpu <Gpu>\n\nDESCRIPTION:\n"
            "  A part; \"a | b\" or c.\n  What each replica gets.\n\nFIELDS:\n"
            "  memory <string> [4GiB]\n    Per device.\n  at <[]integer> [[50, 80]]\n    Percent.\n");
  EXPECT_THAT(
      explained(docs, find_field(docs, "service").value(), Depth::recursive),
      HasSubstr("  spec <ServiceSpec>\n    gpu <Gpu>\n      memory <string>\n      at <[]integer>\n    parts "
                "<[]Gpu>\n      memory <string>\n"));
}

TEST(FieldDocs, makes_schemas_with_types_defaults_and_descriptions) {
  const auto schema = api::parse(json_schema(parse_fields_page(page), objects::Kind::service)).value();
  const auto& spec = schema["properties"]["spec"];
  EXPECT_EQ(spec["additionalProperties"], false);
  EXPECT_EQ(spec["properties"]["replicas"],
            api::parse(R"({"type": "integer", "description": "Number.", "default": 1})").value());
  EXPECT_EQ(spec["properties"]["parts"]["items"]["properties"]["at"]["default"], api::Json::array({50, 80}));
  EXPECT_EQ(schema["properties"]["kind"]["const"], "Service");
}

// Returns the paths of the properties in a schema of the API: "gpu.memory". Fields of lists and maps follow
// their own fields.
void add_paths(const api::Json& schema, const std::string& path, std::vector<std::string>& out) {
  if (schema.contains("items") && schema["items"].is_object()) return add_paths(schema["items"], path, out);
  if (!schema.contains("properties")) return;
  for (const auto& [key, inner] : schema["properties"].items()) {
    out.push_back(path + "." + key);
    add_paths(inner, path + "." + key, out);
  }
}

template <class Document>
void expect_all_fields(objects::Kind kind) {
  const std::string name(objects::text_of(kind).singular);
  std::vector<std::string> paths;
  add_paths(api::parse(api::schema<Document>()).value(), name, paths);
  EXPECT_GT(paths.size(), 10u);
  for (const std::string& path : paths) {
    const auto found = find_field(field_docs(), path);
    ASSERT_TRUE(found) << found.error();
    EXPECT_NE(found->field.meaning, "") << path;
  }
}

TEST(FieldDocs, has_every_field_of_every_kind) {
  expect_all_fields<objects::Service>(objects::Kind::service);
  expect_all_fields<objects::Application>(objects::Kind::application);
  expect_all_fields<objects::Node>(objects::Kind::node);
  expect_all_fields<objects::Pool>(objects::Kind::pool);
  expect_all_fields<objects::Queue>(objects::Kind::queue);
  expect_all_fields<objects::Job>(objects::Kind::job);
  expect_all_fields<objects::Tariff>(objects::Kind::tariff);
  expect_all_fields<objects::Budget>(objects::Kind::budget);
  expect_all_fields<objects::RayCluster>(objects::Kind::ray_cluster);
}

}  // namespace
}  // namespace carve::cli
