#include "wire/api/json.h"

#include <cstring>
#include <limits>

#include "wire/api/json_value.h"

namespace carve::api {

namespace {

std::string text_of(const Json& value, int indent, bool ascii = false) {
  return value.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

}  // namespace

std::string indented(const std::string& json) {
  const auto parsed = parse(json);
  return parsed ? text_of(*parsed, 2) : json;
}

std::string quoted(const std::string& text) { return text_of(Json(text), -1); }

const char* way_to_text(const Json& value, std::string_view wanted) {
  return wanted == a_text && (value.is_number() || value.is_boolean()) ? "; write it in quotes" : "";
}

namespace {

const void* at_offset(const void* document, size_t offset) {
  return static_cast<const char*>(document) + offset;
}

uint64_t unsigned_at(const void* from, unsigned bytes) {
  uint64_t out = 0;
  std::memcpy(&out, from, bytes);  // Little-endian, as all machines that CUDA supports.
  return out;
}

int64_t signed_at(const void* from, unsigned bytes) {
  const unsigned unused = 64 - 8 * bytes;
  return static_cast<int64_t>(unsigned_at(from, bytes) << unused) >> unused;
}

Json written(const void* from, const JsonType& type);

Json written_document(const void* from, const JsonType& type) {
  Json out = Json::object();
  for (const JsonField& field : type.fields) {
    const void* const at = at_offset(from, field.offset);
    const JsonType& field_type = field.type();
    const bool is_absent = field_type.shape == JsonShape::optional && field_type.items.size(at) == 0;
    Json value = is_absent ? Json() : written(at, field_type);
    const bool is_omitted =
        field.omitted == nullptr ? is_absent : value == written(field.omitted, field_type);
    if (!is_omitted) out[field.key] = std::move(value);
  }
  return out;
}

Json written_map(const void* from, const JsonType& type) {
  struct Context {
    Json out = Json::object();
    const JsonType& item;
  } context{.item = type.items.type()};
  type.items.each(from, &context, [](void* to, const std::string& name, const void* item) {
    auto& [out, item_type] = *static_cast<Context*>(to);
    out[name] = written(item, item_type);
  });
  return std::move(context.out);
}

Json written_list(const void* from, const JsonType& type) {
  Json out = Json::array();
  for (size_t i = 0; i < type.items.size(from); ++i)
    out.push_back(written(type.items.at(from, i), type.items.type()));
  return out;
}

Json written_row(const void* from, const JsonType& type) {
  Json out = Json::array();
  for (const JsonField& field : type.fields)
    out.push_back(written(at_offset(from, field.offset), field.type()));
  return out;
}

// Does not recurse deeper than types are nested.
Json written(const void* from, const JsonType& type) {
  switch (type.shape) {
    case JsonShape::document: return written_document(from, type);
    case JsonShape::row: return written_row(from, type);
    case JsonShape::list: return written_list(from, type);
    case JsonShape::optional:
      return type.items.size(from) == 0 ? Json() : written(type.items.at(from, 0), type.items.type());
    case JsonShape::map:
    case JsonShape::texts: return written_map(from, type);
    case JsonShape::enumeration:
    case JsonShape::word: return type.words.text(from);
    case JsonShape::text: return *static_cast<const std::string*>(from);
    case JsonShape::uuid: return text(*static_cast<const Uuid*>(from));
    case JsonShape::boolean: return *static_cast<const bool*>(from);
    case JsonShape::signed_integer: return signed_at(from, type.bytes);
    case JsonShape::unsigned_integer:
    case JsonShape::amount: return unsigned_at(from, type.bytes);
  }
  std::abort();
}

std::string shown(const Json& value) {
  std::string text = text_of(value, -1, /*ascii=*/true);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// Reads values of one text, and collects the errors.
class Reader {
 public:
  explicit Reader(Reading reading) : reading_(reading) {}

  void read(const Json& value, void* out, const JsonType& type, const std::string& path);
  FieldErrors& errors() { return errors_; }

 private:
  void read_document(const Json& value, void* out, const JsonType& type, const std::string& path);
  void read_row(const Json& value, void* out, const JsonType& type, const std::string& path);
  void read_list(const Json& value, void* out, const JsonType& type, const std::string& path);
  void read_map(const Json& value, void* out, const JsonType& type, const std::string& path);
  void read_word(const Json& value, void* out, const JsonType& type, const std::string& path);
  void read_number(const Json& value, void* out, const JsonType& type, const std::string& path);
  void refuse(const Json& value, std::string_view wanted, const std::string& path);
  void refuse_unknown(const Json& object, const JsonType& type, const std::string& path);

  Reading reading_;
  FieldErrors errors_;
};

std::string member_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

void Reader::refuse(const Json& value, std::string_view wanted, const std::string& path) {
  if (errors_.size() == max_field_errors) return;
  const std::string text = shown(value);
  errors_.push_back({.field = path,
                     .value = text,
                     .message = fmt::format("{}: {} is not {}{}", path.empty() ? "document" : path, text,
                                            wanted, way_to_text(value, wanted))});
}

void Reader::refuse_unknown(const Json& object, const JsonType& type, const std::string& path) {
  std::set<std::string> known;
  for (const JsonField& field : type.fields) known.insert(field.key);
  for (const auto& [key, value] : object.items()) {
    if (known.contains(key)) continue;
    if (errors_.size() == max_field_errors) return;
    const std::string field = member_path(path, key);
    errors_.push_back(
        {.field = field,
         .value = "",
         .message = fmt::format("{}: unknown field; the fields are {}", field, fmt::join(known, ", "))});
  }
}

void Reader::read_document(const Json& value, void* out, const JsonType& type, const std::string& path) {
  if (!value.is_object()) return refuse(value, "an object", path);
  for (const JsonField& field : type.fields)
    if (const auto found = value.find(field.key); found != value.end())
      read(*found, static_cast<char*>(out) + field.offset, field.type(), member_path(path, field.key));
  if (reading_ == Reading::strict) refuse_unknown(value, type, path);
}

void Reader::read_row(const Json& value, void* out, const JsonType& type, const std::string& path) {
  if (!value.is_array() || value.size() != type.fields.size())
    return refuse(value, fmt::format("a list of {} values", type.fields.size()), path);
  for (size_t i = 0; i < value.size(); ++i)
    read(value[i], static_cast<char*>(out) + type.fields[i].offset, type.fields[i].type(),
         fmt::format("{}[{}]", path, i));
}

void Reader::read_list(const Json& value, void* out, const JsonType& type, const std::string& path) {
  if (!value.is_array()) return refuse(value, "a list", path);
  type.items.clear(out);
  for (size_t i = 0; i < value.size() && errors_.size() < max_field_errors; ++i)
    read(value[i], type.items.add(out, ""), type.items.type(), fmt::format("{}[{}]", path, i));
}

void Reader::read_map(const Json& value, void* out, const JsonType& type, const std::string& path) {
  const bool has_texts = type.shape == JsonShape::texts;
  if (!value.is_object()) return refuse(value, has_texts ? "an object of strings" : "an object", path);
  type.items.clear(out);
  for (const auto& [key, item] : value.items())
    read(item, type.items.add(out, key), type.items.type(), member_path(path, key));
}

void Reader::read_word(const Json& value, void* out, const JsonType& type, const std::string& path) {
  if (!value.is_string()) return refuse(value, a_text, path);
  if (!type.words.assign(out, value.get_ref<const std::string&>()))
    refuse(value, choice(type.words.known), path);
}

void Reader::read_number(const Json& value, void* out, const JsonType& type, const std::string& path) {
  constexpr std::string_view too_large = "a number that fits this field";
  if (type.shape == JsonShape::signed_integer) {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
      return refuse(value, "a whole number", path);
    const auto number = value.get<int64_t>();
    if (signed_at(&number, type.bytes) != number) return refuse(value, too_large, path);
    std::memcpy(out, &number, type.bytes);
    return;
  }
  if (!value.is_number_unsigned()) return refuse(value, "a non-negative whole number", path);
  const auto number = value.get<uint64_t>();
  if (unsigned_at(&number, type.bytes) != number) return refuse(value, too_large, path);
  std::memcpy(out, &number, type.bytes);
}

// Fills `out` from `value`, and adds an error for each part that does not fit. An absent field keeps its
// default.
void Reader::read(const Json& value, void* out, const JsonType& type, const std::string& path) {
  switch (type.shape) {
    case JsonShape::document: return read_document(value, out, type, path);
    case JsonShape::row: return read_row(value, out, type, path);
    case JsonShape::list: return read_list(value, out, type, path);
    case JsonShape::optional:
      type.items.clear(out);
      return value.is_null() ? void() : read(value, type.items.add(out, ""), type.items.type(), path);
    case JsonShape::map:
    case JsonShape::texts: return read_map(value, out, type, path);
    case JsonShape::enumeration:
    case JsonShape::word: return read_word(value, out, type, path);
    case JsonShape::text:
      if (!value.is_string()) return refuse(value, a_text, path);
      *static_cast<std::string*>(out) = value.get<std::string>();
      return;
    case JsonShape::uuid: {
      if (!value.is_string()) return refuse(value, a_text, path);
      const auto uuid = parse_uuid(value.get_ref<const std::string&>());
      if (!uuid) return refuse(value, "the UUID of a device", path);
      *static_cast<Uuid*>(out) = *uuid;
      return;
    }
    case JsonShape::boolean:
      if (!value.is_boolean()) return refuse(value, "true or false", path);
      *static_cast<bool*>(out) = value.get<bool>();
      return;
    case JsonShape::signed_integer:
    case JsonShape::unsigned_integer:
    case JsonShape::amount: return read_number(value, out, type, path);
  }
}

std::string camel_case(const std::string& name) {  // "max_surge" -> "maxSurge", "namespace_" -> "namespace"
  std::string out;
  for (size_t i = 0; i < name.size(); ++i)
    if (name[i] != '_')
      out += name[i];
    else if (i + 1 < name.size())
      out += static_cast<char>(name[++i] - 'a' + 'A');
  return out;
}

}  // namespace

namespace detail {

void add_field(JsonType& type, const void* document, const char* name, const void* field,
               JsonTypeOf field_type, bool is_camel_case, const void* omitted) {
  const auto offset =
      static_cast<size_t>(static_cast<const char*>(field) - static_cast<const char*>(document));
  type.fields.push_back({.key = is_camel_case ? camel_case(name) : name,
                         .offset = offset,
                         .type = field_type,
                         .omitted = omitted});
}

std::string write(const void* document, const JsonType& type, int indent) {
  return text_of(written(document, type), indent);
}

FieldErrors read(std::string_view text, void* document, const JsonType& type, Reading reading) {
  const auto json =
      parse(text, Decimals::as_doubles, max_depth, reading == Reading::strict ? max_nodes : SIZE_MAX);
  if (!json) return {{.field = "", .value = "", .message = json.error()}};
  Reader reader(reading);
  reader.read(*json, document, type, "");
  return std::move(reader.errors());
}

}  // namespace detail
namespace {

// Returns whether the fields are the same or one is a part of the other.
bool are_related(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return a.empty() ||
         (b.starts_with(a) && (b.size() == a.size() || b[a.size()] == '.' || b[a.size()] == '['));
}

}  // namespace

FieldErrors joined(FieldErrors reading, const FieldErrors& checks) {
  const size_t count = reading.size();
  for (const FieldError& check : checks) {
    const bool is_known =
        std::any_of(reading.begin(), reading.begin() + static_cast<ptrdiff_t>(count),
                    [&](const FieldError& one) { return are_related(one.field, check.field); });
    if (!is_known && reading.size() < max_field_errors) reading.push_back(check);
  }
  return reading;
}

}  // namespace carve::api
