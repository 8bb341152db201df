// The fields of the documents of objects, for `carve explain KIND.FIELD` and the JSON Schemas. They are read from
// docs/fields.md, which is part of the program: tools/fields-doc generates the page from the declarations in
// src/objects, and a test fails if it is out of date.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "objects/kind.h"

namespace carve::cli {

struct FieldDoc {
  std::string name;
  std::string type;       // "string", "integer", "boolean", "map of strings", or the name of a structure.
  bool is_list = false;   // A list of this type.
  std::string otherwise;  // The default; empty if the page shows none.
  std::string meaning;    // Plain text.
};

struct StructureDoc {
  std::string about;  // Plain text; may be empty.
  std::vector<FieldDoc> fields;
};

struct FieldDocs {
  std::map<std::string, std::string> kinds;         // Keyed by kind, "Service": its description.
  std::map<std::string, StructureDoc> structures;   // Keyed by name, "ServiceSpec".
  std::map<std::string, std::string> status_types;  // Keyed by kind; its status, if another kind's.
};

extern const char* const fields_page;  // The text of docs/fields.md.

// Parses the page. Lines of other forms are ignored.
FieldDocs parse_fields_page(std::string_view page);
// Returns the fields in the program's own page, which is parsed once.
const FieldDocs& field_docs();

// A kind, a structure or a simple field, found by a path such as "service.spec.gpu".
struct NamedField {
  objects::Kind kind = objects::Kind::service;
  std::string path;  // Without the kind: "spec.gpu". Empty for the kind itself.
  FieldDoc field;    // Its type is a structure or a simple type. For a kind, its type is empty.
};
// Returns the field, or a message with the fields that exist.
Result<NamedField, std::string> find_field(const FieldDocs&, const std::string& path);

// Returns the fields of a kind: apiVersion, kind, metadata, spec and, if it has one, status.
std::vector<FieldDoc> fields_of_kind(const FieldDocs&, objects::Kind);

enum class Depth : uint8_t { one_level, recursive };
// Returns the text of `carve explain PATH`.
std::string explained(const FieldDocs&, const NamedField&, Depth);
// Returns the JSON Schema (draft 2020-12) of documents of the kind that users write, for editors. Objects have
// no status in it.
std::string json_schema(const FieldDocs&, objects::Kind);

}  // namespace carve::cli
