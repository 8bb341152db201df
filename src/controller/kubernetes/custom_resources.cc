#include "controller/kubernetes/custom_resources.h"

#include "controller/kubernetes/custom_resource_rules.h"
#include "controller/objects/kind_table.h"
#include "core/invariant.h"
#include "objects/object.h"
#include "wire/api/json_schema.h"
#include "yaml/yaml_text.h"

namespace carve::controller {
namespace {

using api::Json;

constexpr std::string_view group = "carve.dev";
constexpr std::string_view version = "v1";

// Parses a schema of our own, without the depth limit for callers' documents.
Json parsed(const std::string& text) { return Json::parse(text); }

// Makes a JSON Schema structural: no additionalProperties next to properties, and no alternatives. A list of
// optional values, {"anyOf":[{...},{"type":"null"}]}, becomes a list of nullable ones.
void make_structural(Json& schema) {
  if (schema.contains("anyOf")) {
    Json value = schema["anyOf"][0];
    value["nullable"] = true;
    schema = std::move(value);
  }
  if (schema.contains("properties")) {
    schema.erase("additionalProperties");
    for (auto& [name, property] : schema["properties"].items()) make_structural(property);
  }
  if (schema.contains("additionalProperties")) make_structural(schema["additionalProperties"]);
  if (schema.contains("items")) make_structural(schema["items"]);
  invariant(!schema.contains("prefixItems"), "no kind of object has a row in a document");
  if (schema.value("type", "") == "integer") schema["format"] = "int64";
}

// The controller writes whole statuses, so the server must not fill in a field that is missing.
void remove_defaults(Json& schema) {
  schema.erase("default");
  if (schema.contains("properties"))
    for (auto& [name, property] : schema["properties"].items()) remove_defaults(property);
  if (schema.contains("items")) remove_defaults(schema["items"]);
}

// Returns the schema of the field, whose path has the form "spec.tolerations[].operator".
Json& field_at(Json& root, std::string_view path) {
  Json* at = &root;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    const bool is_list = name.ends_with("[]");
    if (is_list) name.remove_suffix(2);
    Json& properties = (*at)["properties"];
    invariant(properties.contains(std::string(name)), "a rule of a custom resource names a field");
    at = &properties[std::string(name)];
    if (is_list) at = &(*at)["items"];
  }
  return *at;
}

// Kubernetes defines the metadata; a definition may only restrict the name.
Json metadata_schema() { return {{"type", "object"}, {"properties", {{"name", {{"type", "string"}}}}}}; }

Json structural_schema(objects::Kind kind) {
  Json out = parsed(row_of(kind).schema());
  make_structural(out);
  Json& fields = out["properties"];
  fields["metadata"] = metadata_schema();
  for (const char* field : {"apiVersion", "kind"}) fields[field].erase("default");
  if (!fields.contains("status")) fields["status"] = {{"type", "object"}, {"properties", Json::object()}};
  // Every kind has conditions on a cluster, also those whose status has none elsewhere.
  Json condition = parsed(api::schema<objects::Condition>());
  make_structural(condition);
  fields["status"]["properties"]["conditions"] = {{"type", "array"}, {"items", std::move(condition)}};
  remove_defaults(fields["status"]);
  out["required"] = {"spec"};
  const CustomResourceRules rules = custom_resource_rules(kind);
  for (const FieldLimit& limit : rules.limits) field_at(out, limit.path).merge_patch(parsed(limit.members));
  for (const CelRule& rule : rules.rules) {
    Json row{{"rule", rule.rule}, {"message", rule.message}};
    if (!rule.field.empty()) row["fieldPath"] = rule.field;
    field_at(out, rule.path)["x-kubernetes-validations"].push_back(std::move(row));
  }
  return out;
}

Json columns_of(const CustomResourceRules& rules) {
  Json out = Json::array();
  for (const PrinterColumn& column : rules.columns) {
    Json row{{"name", column.name}, {"type", column.type}, {"jsonPath", column.path}};
    if (column.is_wide) row["priority"] = 1;
    out.push_back(std::move(row));
  }
  return out;
}

Json subresources_of(objects::Kind kind) {
  Json out{{"status", Json::object()}};
  if (objects::text_of(kind).is_workload)
    out["scale"] = {{"specReplicasPath", ".spec.replicas"},
                    {"statusReplicasPath", ".status.replicas"},
                    {"labelSelectorPath", ".status.selector"}};
  return out;
}

}  // namespace

std::string custom_resource_name(objects::Kind kind) {
  return fmt::format("{}.{}", objects::text_of(kind).plural, group);
}

std::string custom_resource_path(objects::Kind kind, const std::string& name_space, const std::string& name) {
  std::string out = fmt::format("/apis/{}/{}", group, version);
  if (!name_space.empty() && !is_cluster_scoped(kind)) out += "/namespaces/" + name_space;
  out += fmt::format("/{}", objects::text_of(kind).plural);
  return name.empty() ? out : out + "/" + name;
}

Json custom_resource_definition(objects::Kind kind) {
  invariant(is_custom_resource(kind), "nodes are Kubernetes' own objects");
  const objects::KindText& names = objects::text_of(kind);
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", custom_resource_name(kind)}}},
          {"spec",
           {{"group", group},
            {"scope", is_cluster_scoped(kind) ? "Cluster" : "Namespaced"},
            {"names",
             {{"kind", names.kind},
              {"listKind", fmt::format("{}List", names.kind)},
              {"singular", names.singular},
              {"plural", names.plural},
              // kubectl resolves `svc` and `no` to its own kinds, so each short name has a prefix.
              {"shortNames", {fmt::format("cv{}", names.shortcut)}},
              {"categories", {"carve"}}}},
            {"versions",
             {{{"name", version},
               {"served", true},
               {"storage", true},
               {"schema", {{"openAPIV3Schema", structural_schema(kind)}}},
               {"subresources", subresources_of(kind)},
               {"additionalPrinterColumns", columns_of(custom_resource_rules(kind))}}}}}}};
}

std::string custom_resource_definitions() {
  std::string out;
  for (const objects::KindText& kind : objects::kinds)
    if (is_custom_resource(kind.value))
      out += (out.empty() ? "" : "---\n") + yaml::yaml_text(custom_resource_definition(kind.value));
  return out;
}

}  // namespace carve::controller
