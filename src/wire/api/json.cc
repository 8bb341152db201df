#include "wire/api/json.h"

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

namespace detail {

void put_object(Json& value) { value = Json::object(); }
void put_list(Json& value) { value = Json::array(); }
Json& added_member(Json& object, const std::string& name) { return object[name]; }
Json& added_item(Json& list) { return list.emplace_back(); }
void put(Json& value, bool from) { value = from; }
void put(Json& value, uint64_t from) { value = from; }
void put(Json& value, int64_t from) { value = from; }
void put(Json& value, const std::string& from) { value = from; }
void put(Json& value, const std::map<std::string, std::string>& from) { value = from; }

bool is_null(const Json& value) { return value.is_null(); }
bool is_object(const Json& value) { return value.is_object(); }
bool is_list(const Json& value) { return value.is_array(); }

const Json* member(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

void refuse_unknown(const Json& object, const std::set<std::string>& known, const std::string& path,
                    FieldErrors& errors) {
  for (const auto& [key, value] : object.items()) {
    if (known.contains(key)) continue;
    if (errors.size() == max_field_errors) return;
    const std::string field = path.empty() ? key : path + "." + key;
    errors.push_back(
        {.field = field,
         .value = "",
         .message = fmt::format("{}: unknown field; the fields are {}", field, fmt::join(known, ", "))});
  }
}

std::string camel_case(const char* name) {
  std::string out;
  for (const char* c = name; *c != '\0'; ++c)
    if (*c != '_')
      out += *c;
    else if (c[1] != '\0')
      out += static_cast<char>(*++c - 'a' + 'A');
  return out;
}

size_t items(const Json& list) { return list.size(); }
const Json& item(const Json& list, size_t index) { return list[index]; }

const char* get(const Json& value, bool& out) {
  if (!value.is_boolean()) return "true or false";
  out = value.get<bool>();
  return nullptr;
}

const char* get(const Json& value, uint64_t& out) {
  if (!value.is_number_unsigned()) return "a non-negative whole number";
  out = value.get<uint64_t>();
  return nullptr;
}

const char* get(const Json& value, int64_t& out) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    return "a whole number";
  out = value.get<int64_t>();
  return nullptr;
}

const char* get(const Json& value, std::string& out) {
  if (!value.is_string()) return a_text.data();
  out = value.get<std::string>();
  return nullptr;
}

void get_texts(const Json& value, std::map<std::string, std::string>& out, const std::string& path,
               FieldErrors& errors) {
  if (!value.is_object()) return refuse(value, "an object of strings", path, errors);
  out.clear();
  for (const auto& [key, text] : value.items())
    if (const char* wanted = get(text, out[key])) refuse(text, wanted, path + "." + key, errors);
}

std::string shown(const Json& value) {
  std::string text = text_of(value, -1, /*ascii=*/true);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

void refuse(const Json& value, const char* wanted, const std::string& path, FieldErrors& errors) {
  if (errors.size() == max_field_errors) return;
  const std::string text = shown(value);
  errors.push_back({.field = path,
                    .value = text,
                    .message = fmt::format("{}: {} is not {}{}", path.empty() ? "document" : path, text,
                                           wanted, way_to_text(value, wanted))});
}

std::string written(void (*fill)(Json& value, const void* document), const void* document, int indent) {
  Json value;
  fill(value, document);
  return text_of(value, indent);
}

FieldErrors read(std::string_view text,
                 void (*fill)(const Json& value, void* document, Reading, FieldErrors& errors),
                 void* document, Reading reading) {
  const auto json =
      parse(text, Decimals::as_doubles, max_depth, reading == Reading::strict ? max_nodes : SIZE_MAX);
  if (!json) return {{.field = "", .value = "", .message = json.error()}};
  FieldErrors errors;
  fill(*json, document, reading, errors);
  return errors;
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
