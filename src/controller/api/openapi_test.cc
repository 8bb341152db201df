#include "controller/api/openapi.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "controller/api/controller_routes.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

api::Json described() {
  // Parsed without the depth limit for callers' documents, because schemas are nested deeper.
  return api::Json::parse(openapi_document(routes(), "1.2.3"));
}

// Returns the served routes, such as "GET /v1/services/{name}", for each route and kind.
std::set<std::string> served() {
  std::set<std::string> out;
  const auto with = [](std::string text, std::string_view hole, std::string_view name) {
    const size_t at = text.find(hole);
    return at == std::string::npos ? text : text.replace(at, hole.size(), name);
  };
  for (const Route& route : routes())
    for (const objects::KindText& kind : objects::kinds)
      if (kind.is_workload)
        out.insert(fmt::format(
            "{} {}", route.method,
            with(with(with(route.path, "{kind}", kind.plural), "{}", "{name}"), "{}", "{slice}")));
  return out;
}

TEST(OpenApi, describes_exactly_the_routes_that_are_served) {
  std::set<std::string> found;
  const api::Json json = described();
  for (const auto& [path, operations] : json["paths"].items())
    for (const auto& [method, operation] : operations.items()) {
      std::string upper = method;
      std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
      found.insert(upper + " " + path);
    }
  EXPECT_EQ(found, served());
}

TEST(OpenApi, describes_for_every_kind_the_routes_of_its_row) {
  const std::set<std::string> all = served();
  for (const objects::KindText& kind : objects::kinds) {
    std::vector<const char*> verbs = {"GET", "PATCH"};
    if (kind.value != objects::Kind::node)  // The nodes come from the command line.
      verbs.insert(verbs.end(), {"PUT", "DELETE"});
    for (const char* verb : verbs)
      EXPECT_TRUE(all.contains(fmt::format("{} /v1/{}/{{name}}", verb, kind.plural))) << verb << kind.kind;
    EXPECT_TRUE(all.contains(fmt::format("GET /v1/{}", kind.plural))) << kind.kind;
    EXPECT_TRUE(all.contains(fmt::format("GET /v1/{}/{{name}}/events", kind.plural))) << kind.kind;
  }
}

TEST(OpenApi, has_a_one_line_summary_and_a_unique_id_for_every_operation) {
  std::set<std::string> ids;
  const api::Json json = described();
  for (const auto& [path, operations] : json["paths"].items())
    for (const auto& [method, operation] : operations.items()) {
      const auto summary = operation["summary"].get<std::string>();
      EXPECT_TRUE(summary.ends_with('.') && std::ranges::count(summary, '.') == 1)
          << method << path << summary;
      EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second) << method << path;
      EXPECT_EQ(
          path.find("{name}") != std::string::npos,
          std::ranges::any_of(operation["parameters"], [](const auto& p) { return p["in"] == "path"; }));
    }
}

TEST(OpenApi, has_a_schema_for_every_reference_and_every_kind) {
  const std::string text = openapi_document(routes(), "1");
  const api::Json schemas = described()["components"]["schemas"];
  constexpr std::string_view prefix = "#/components/schemas/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    const size_t begin = at + prefix.size();
    EXPECT_TRUE(schemas.contains(text.substr(begin, text.find('"', begin) - begin))) << text.substr(at, 60);
  }
  for (const objects::KindText& kind : objects::kinds)
    EXPECT_TRUE(schemas.contains(std::string(kind.kind))) << kind.kind;
}

TEST(OpenApi, has_the_fields_of_the_document_in_its_schema) {
  const api::Json service = described()["components"]["schemas"]["Service"]["properties"];
  const api::Json spec = service["spec"]["properties"];
  EXPECT_EQ(spec["replicas"], *api::parse(R"({"type":"integer","minimum":0,"default":1})"));
  EXPECT_EQ(spec["gpu"]["properties"]["memory"], *api::parse(R"({"type":"string"})"));
  EXPECT_EQ(spec["run"]["properties"]["env"],
            *api::parse(R"({"type":"object","additionalProperties":{"type":"string"}})"));
  EXPECT_EQ(spec["stopped"], *api::parse(R"({"type":"boolean","default":false})"));
  EXPECT_EQ(service["metadata"]["properties"]["namespace"]["default"], "default");
  EXPECT_EQ(service["spec"]["additionalProperties"], false);
  EXPECT_EQ(service["status"]["properties"]["replicaList"]["type"], "array");
}

}  // namespace
}  // namespace carve::controller
