// Prints fields: the text of `carve explain` and JSON Schemas.
#include <algorithm>

#include "cli/field_docs.h"
#include "objects/object.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using api::Json;

constexpr size_t max_text_columns = 76;
constexpr size_t max_nested_structures = 8;  // A structure that contained itself would not end otherwise.

// Returns the text in lines that begin with the blanks.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out, line;
  const auto add_line = [&] {
    out += fmt::format("{:{}}{}\n", "", indent, line);
    line.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > max_text_columns) add_line();
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
    at = end + 1;
  }
  if (!line.empty()) add_line();
  return out;
}

std::string type_text(const FieldDoc& field) {
  const std::string type = field.type == "map of strings" ? "map[string]string" : field.type;
  return field.is_list ? "[]" + type : type;
}

const std::vector<FieldDoc>* fields_in(const FieldDocs& docs, const std::string& type) {
  const auto structure = docs.structures.find(type);
  return structure == docs.structures.end() ? nullptr : &structure->second.fields;
}

void add_tree(const FieldDocs& docs, const std::vector<FieldDoc>& fields, size_t depth, std::string& out) {
  for (const FieldDoc& field : fields) {
    out += fmt::format("{:{}}{} <{}>\n", "", 2 * depth, field.name, type_text(field));
    if (const auto* inner = fields_in(docs, field.type); inner != nullptr && depth < max_nested_structures)
      add_tree(docs, *inner, depth + 1, out);
  }
}

void add_fields(const std::vector<FieldDoc>& fields, std::string& out) {
  for (const FieldDoc& field : fields) {
    out += fmt::format("  {} <{}>{}\n", field.name, type_text(field),
                       field.otherwise.empty() ? "" : fmt::format(" [{}]", field.otherwise));
    out += wrapped(field.meaning, 4);
  }
}

// Returns the value as its type is written in JSON.
Json default_of(const FieldDoc& field) {
  if (field.is_list || field.type == "integer" || field.type == "boolean")
    if (auto value = api::parse("{\"v\":" + field.otherwise + "}")) return (*value)["v"];
  return field.otherwise;
}

Json schema_of_fields(const FieldDocs& docs, const std::vector<FieldDoc>& fields, size_t depth);

Json schema_of_type(const FieldDocs& docs, const FieldDoc& field, const std::string& structure,
                    size_t depth) {
  if (field.type == "integer" || field.type == "boolean") return {{"type", field.type}};
  if (field.type == "map of strings")
    return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  const auto* inner = fields_in(docs, field.type);
  if (inner != nullptr && depth < max_nested_structures) return schema_of_fields(docs, *inner, depth + 1);
  // An application's amounts may also be numbers, as in Volcengine's documents.
  const bool may_be_number =
      structure == "ApplicationGpu" && (field.name == "compute" || field.name == "memory");
  return may_be_number ? Json{{"type", Json::array({"string", "number"})}} : Json{{"type", "string"}};
}

Json schema_of_field(const FieldDocs& docs, const FieldDoc& field, const std::string& structure,
                     size_t depth) {
  Json out = schema_of_type(docs, field, structure, depth);
  if (field.is_list) out = {{"type", "array"}, {"items", std::move(out)}};
  if (!field.meaning.empty()) out["description"] = field.meaning;
  if (!field.otherwise.empty()) out["default"] = default_of(field);
  return out;
}

// Returns the name of the structure with these fields, which are part of `docs`.
std::string structure_of(const FieldDocs& docs, const std::vector<FieldDoc>& fields) {
  for (const auto& [name, structure] : docs.structures)
    if (&structure.fields == &fields) return name;
  return "";
}

Json schema_of_fields(const FieldDocs& docs, const std::vector<FieldDoc>& fields, size_t depth) {
  const std::string structure = structure_of(docs, fields);
  Json properties = Json::object();
  for (const FieldDoc& field : fields)
    properties[field.name] = schema_of_field(docs, field, structure, depth);
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

}  // namespace

std::string explained(const FieldDocs& docs, const NamedField& named, Depth depth) {
  const std::string kind(objects::text_of(named.kind).kind);
  std::string out = fmt::format("KIND:     {}\nVERSION:  {}\n", kind, objects::api_version);
  if (!named.path.empty()) out += fmt::format("FIELD:    {} <{}>\n", named.path, type_text(named.field));
  if (!named.field.otherwise.empty()) out += fmt::format("DEFAULT:  {}\n", named.field.otherwise);
  out += "\nDESCRIPTION:\n";
  const auto structure = docs.structures.find(named.field.type);
  const auto about = docs.kinds.find(kind);
  if (named.path.empty() && about != docs.kinds.end()) out += wrapped(about->second, 2);
  out += wrapped(named.field.meaning, 2);
  if (structure != docs.structures.end()) out += wrapped(structure->second.about, 2);
  const std::vector<FieldDoc> fields = named.path.empty()                   ? fields_of_kind(docs, named.kind)
                                       : structure != docs.structures.end() ? structure->second.fields
                                                                            : std::vector<FieldDoc>();
  if (fields.empty()) return out;
  out += "\nFIELDS:\n";
  depth == Depth::recursive ? add_tree(docs, fields, 1, out) : add_fields(fields, out);
  return out;
}

std::string json_schema(const FieldDocs& docs, objects::Kind kind) {
  const std::string name(objects::text_of(kind).kind);
  std::vector<FieldDoc> fields = fields_of_kind(docs, kind);
  std::erase_if(fields, [](const FieldDoc& field) { return field.name == "status"; });
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", name}};
  if (const auto about = docs.kinds.find(name); about != docs.kinds.end()) out["description"] = about->second;
  out.update(schema_of_fields(docs, fields, 0));
  Json& properties = out["properties"];
  properties["apiVersion"]["const"] = objects::api_version;
  properties["kind"]["const"] = name;
  // Objects that `carve get -o yaml` printed have a status, which is ignored.
  properties["status"] = {{"description", "Set by the controller; ignored in a document."}};
  out["required"] = Json::array({"apiVersion", "kind"});
  if (kind == objects::Kind::job) return out.dump(2) + "\n";  // The controller chooses a job's name.
  properties["metadata"]["required"] = Json::array({"name"});
  out["required"].push_back("metadata");
  return out.dump(2) + "\n";
}

}  // namespace carve::cli
