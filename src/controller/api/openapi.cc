#include "controller/api/openapi.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <ranges>

#include "controller/api/kind_routes.h"
#include "controller/objects/kind_table.h"
#include "core/invariant.h"
#include "objects/kind.h"
#include "objects/object_event.h"
#include "objects/pool_object.h"
#include "objects/revision.h"
#include "wire/api/allocations.h"
#include "wire/api/bill.h"
#include "wire/api/device.h"
#include "wire/api/identity.h"
#include "wire/api/json_schema.h"
#include "wire/api/metric_history.h"
#include "wire/api/plan.h"
#include "wire/api/slice.h"

namespace carve::controller {
namespace {

constexpr std::string_view schema_prefix = "#/components/schemas/";

// Returns the schemas by name. The schema of a kind has the name of the kind.
const std::map<std::string_view, std::string>& schemas() {
  static const std::map<std::string_view, std::string> all = [] {
    std::map<std::string_view, std::string> out = {
        {"Access", api::schema<api::Access>()},
        {"Allocations", api::schema<api::Allocations>()},
        {"AppliedList", api::schema<api::AppliedList>()},
        {"AuditList", api::schema<api::AuditList>()},
        {"Bill", api::schema<api::Bill>()},
        {"ControllerVersion", api::schema<api::ControllerVersion>()},
        {"DeviceList", api::schema<api::DeviceList>()},
        {"EasChanges", api::schema<api::EasChanges>()},
        {"Explanation", api::schema<api::Explanation>()},
        {"JobParameters", api::schema<api::JobParameters>()},
        {"MetricHistory", api::schema<api::MetricHistory>()},
        {"Nothing", api::schema<api::Nothing>()},
        {"ObjectEventList", api::schema<objects::ObjectEventList>()},
        {"Problem", api::schema<api::Problem>()},
        {"Rendered", api::schema<api::Rendered>()},
        {"RevisionList", api::schema<objects::RevisionList>()},
        {"SessionView", api::schema<api::SessionView>()},
        {"SignInCode", api::schema<api::SignInCode>()},
        {"SignInRequest", api::schema<api::SignInRequest>()},
        {"Slice", api::schema<api::Slice>()},
        {"SliceChange", api::schema<api::SliceChange>()},
        {"SliceList", api::schema<api::SliceList>()},
        {"SliceRequest", api::schema<api::SliceRequest>()},
        {"Slicing", api::schema<objects::Slicing>()},
        {"TokenList", api::schema<api::TokenList>()},
        {"TokenMade", api::schema<api::TokenMade>()},
        {"TokenRequest", api::schema<api::TokenRequest>()},
        {"UndoRequest", api::schema<objects::UndoRequest>()},
    };
    for (const objects::KindText& kind : objects::kinds) out.emplace(kind.kind, row_of(kind.value).schema());
    return out;
  }();
  return all;
}

std::string reference(std::string_view name) {
  return fmt::format(R"({{"$ref":"{}{}"}})", schema_prefix, name);
}

std::string list_schema(std::string_view kind) {
  return fmt::format(
      R"({{"type":"object","properties":{{"items":{{"type":"array","items":{}}},"metadata":{{"type":"object",)"
      R"("properties":{{"resourceVersion":{{"type":"string"}},"continue":{{"type":"string"}}}}}}}}}})",
      reference(kind));
}

// Returns "TYPE":{"schema":...} for one content type.
std::string content(std::string_view schema, const objects::KindText* kind) {
  if (schema == "text") return R"("text/plain":{"schema":{"type":"string"}})";
  if (schema == "events") return R"("text/event-stream":{"schema":{"type":"string"}})";
  if (schema == "any") return R"("application/json":{"schema":{"type":"object"}})";
  if (schema == "KindList")
    return fmt::format(R"("application/json":{{"schema":{}}})", reference(fmt::format("{}List", kind->kind)));
  const std::string_view name = schema == "Kind" ? kind->kind : schema;
  const bool is_list_of_kind = std::ranges::any_of(
      objects::kinds, [&](const objects::KindText& k) { return fmt::format("{}List", k.kind) == name; });
  invariant(is_list_of_kind || schemas().contains(name), "every schema that a route names is in the table");
  return fmt::format(R"("application/json":{{"schema":{}}})", reference(name));
}

std::string parameters(const Route& route) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view place) {
    out += fmt::format(R"({}{{"name":"{}","in":"{}","required":{},"schema":{{"type":"string"}}}})",
                       out.empty() ? "" : ",", name, place, place == "path");
  };
  const std::string_view path = route.path;
  if (path.find("{}") != std::string_view::npos) add("name", "path");
  if (path.find("{}") != path.rfind("{}")) add("slice", "path");
  for (const auto part : std::views::split(std::string_view(route.query), ' '))
    if (const std::string_view name(part.begin(), part.end()); !name.empty()) add(name, "query");
  return out;
}

// Returns a unique identifier: "get_v1_services_name".
std::string operation_id(const Route& route, const std::string& path) {
  std::string out = fmt::format("{} {}", route.method, path);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '_';
  });
  out.erase(std::ranges::unique(out, [](char a, char b) { return a == '_' && b == '_'; }).begin(), out.end());
  return out;
}

std::string operation(const Route& route, const std::string& path, const objects::KindText* kind) {
  const std::string body = route.body_schema.empty() ? ""
                                                     : fmt::format(R"("requestBody":{{"content":{{{}}}}},)",
                                                                   content(route.body_schema, kind));
  return fmt::format(
      R"({{"operationId":"{}","summary":{},"parameters":[{}],{}"responses":{{"2XX":{{"description":"done",)"
      R"("content":{{{}}}}},"default":{{"description":"refused","content":{{"application/problem+json":)"
      R"({{"schema":{}}}}}}}}}}})",
      operation_id(route, path), api::quoted(route.summary), parameters(route), body,
      content(route.answer_schema, kind), reference("Problem"));
}

std::string replaced(std::string text, std::string_view hole, std::string_view with) {
  const size_t at = text.find(hole);
  return at == std::string::npos ? text : text.replace(at, hole.size(), with);
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::string openapi_document(std::span<const Route> routes, const std::string& version) {
  std::map<std::string, std::string> paths;  // Each maps to "METHOD":{...},...
  const auto add = [&](const Route& route, const std::string& path, const objects::KindText* kind) {
    std::string& operations = paths[path];
    operations += fmt::format(R"({}"{}":{})", operations.empty() ? "" : ",", in_lower_case(route.method),
                              operation(route, path, kind));
  };
  for (const Route& route : routes) {
    const std::string path = replaced(replaced(route.path, "{}", "{name}"), "{}", "{slice}");
    if (path.find("{kind}") == std::string::npos) {
      add(route, path, nullptr);
      continue;
    }
    for (const objects::KindText& kind : objects::kinds)
      if (kind.is_workload) add(route, replaced(path, "{kind}", kind.plural), &kind);
  }
  std::string path_text, schema_text;
  for (const auto& [path, operations] : paths)
    path_text += fmt::format("{}{}:{{{}}}", path_text.empty() ? "" : ",", api::quoted(path), operations);
  for (const auto& [name, schema] : schemas())
    schema_text += fmt::format(R"({}"{}":{})", schema_text.empty() ? "" : ",", name, schema);
  for (const objects::KindText& kind : objects::kinds)
    if (schemas().contains(kind.kind))
      schema_text += fmt::format(R"(,"{}List":{})", kind.kind, list_schema(kind.kind));
  return fmt::format(
      R"({{"openapi":"3.1.0","info":{{"title":"carve-controller","version":{}}},"security":[{{"token":[]}}],)"
      R"("paths":{{{}}},"components":{{"securitySchemes":{{"token":{{"type":"http","scheme":"bearer"}}}},)"
      R"("schemas":{{{}}}}}}})",
      api::quoted(version), path_text, schema_text);
}

}  // namespace carve::controller
