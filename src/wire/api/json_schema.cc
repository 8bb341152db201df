#include "wire/api/json_schema.h"

#include <cstring>

namespace carve::api {
namespace {

std::string text_default(const std::string& text) {
  return text.empty() ? "" : ",\"default\":" + quoted(text);
}

// Returns `,"default":VALUE` unless readers would assume the value.
std::string integer_default(const JsonType& type, const void* value) {
  int64_t number = 0;
  std::memcpy(&number, value, type.bytes);
  const unsigned unused = 64 - 8 * type.bytes;
  if (number == 0) return "";
  return type.shape == JsonShape::signed_integer
             ? fmt::format(",\"default\":{}", number << unused >> unused)
             : fmt::format(",\"default\":{}", static_cast<uint64_t>(number));
}

// Returns the members of the type's schema, without its braces. `value` has the defaults; it is null if the
// type is that of an item.
std::string members(const JsonType& type, const void* value);

std::string field_members(const JsonField& field, const void* document) {
  return members(field.type(), static_cast<const char*>(document) + field.offset);
}

std::string document_members(const JsonType& type, const void* value) {
  std::vector<std::string> properties;
  for (const JsonField& field : type.fields)
    properties.push_back(fmt::format("{}:{{{}}}", quoted(field.key), field_members(field, value)));
  return fmt::format(R"("type":"object","additionalProperties":false,"properties":{{{}}})",
                     fmt::join(properties, ","));
}

std::string row_members(const JsonType& type, const void* value) {
  std::vector<std::string> items;
  for (const JsonField& field : type.fields)
    items.push_back(fmt::format("{{{}}}", field_members(field, value)));
  return fmt::format(R"("type":"array","prefixItems":[{}],"items":false)", fmt::join(items, ","));
}

std::string item_members(const JsonType& container) { return members(container.items.type(), nullptr); }

std::string list_members(const JsonType& list) {
  const bool has_nulls = list.items.type().shape == JsonShape::optional;
  return has_nulls ? fmt::format(R"("type":"array","items":{{"anyOf":[{{{}}},{{"type":"null"}}]}})",
                                 item_members(list))
                   : fmt::format(R"("type":"array","items":{{{}}})", item_members(list));
}

std::string enumeration_members(const JsonType& type) {
  std::vector<std::string> words;
  for (const std::string_view word : type.words.known) words.push_back(quoted(std::string(word)));
  return fmt::format(R"("type":"string","enum":[{}])", fmt::join(words, ","));
}

std::string members(const JsonType& type, const void* value) {
  switch (type.shape) {
    case JsonShape::document: return document_members(type, value == nullptr ? type.defaults : value);
    case JsonShape::row: return row_members(type, value == nullptr ? type.defaults : value);
    case JsonShape::list: return list_members(type);
    case JsonShape::optional: return item_members(type);
    case JsonShape::map:
    case JsonShape::texts:
      return fmt::format(R"("type":"object","additionalProperties":{{{}}})", item_members(type));
    case JsonShape::enumeration: return enumeration_members(type);
    case JsonShape::boolean:
      return fmt::format(R"("type":"boolean","default":{})",
                         value != nullptr && *static_cast<const bool*>(value));
    case JsonShape::amount: return R"("type":"integer","minimum":0)";
    case JsonShape::unsigned_integer:
      return R"("type":"integer","minimum":0)" + (value == nullptr ? "" : integer_default(type, value));
    case JsonShape::signed_integer:
      return R"("type":"integer")" + (value == nullptr ? "" : integer_default(type, value));
    case JsonShape::text:
      return R"("type":"string")" +
             (value == nullptr ? "" : text_default(*static_cast<const std::string*>(value)));
    case JsonShape::word:
      return R"("type":"string")" + (value == nullptr ? "" : text_default(type.words.text(value)));
    case JsonShape::uuid: return R"("type":"string")";
  }
  return "";
}

}  // namespace

std::string schema(const JsonType& type) { return fmt::format("{{{}}}", members(type, type.defaults)); }

}  // namespace carve::api
