#include "wire/api/json.h"

#include <algorithm>

#include "wire/api/json_value.h"

namespace carve::api {

Result<Json, std::string> parse(std::string_view text) {
  int deepest = 0;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth <= max_depth;
  };
  // The callback keeps deep values out of memory, and the parser itself does not recurse.
  Json out = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (out.is_discarded()) return tl::unexpected(std::string("the document is not JSON"));
  if (deepest > max_depth)
    return tl::unexpected(fmt::format("the document is nested deeper than {} levels", max_depth));
  return out;
}

namespace {

std::string text_of(const Json& value, int indent, bool ascii = false) {
  return value.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

}  // namespace

std::string quoted(const std::string& text) { return text_of(Json(text), -1); }

namespace detail {

void put_object(Json& value) { value = Json::object(); }
void put_list(Json& value) { value = Json::array(); }
Json& added_member(Json& object, const char* name) { return object[name]; }
Json& added_item(Json& list) { return list.emplace_back(); }
void put(Json& value, bool from) { value = from; }
void put(Json& value, uint64_t from) { value = from; }
void put(Json& value, int64_t from) { value = from; }
void put(Json& value, const std::string& from) { value = from; }
void put(Json& value, const std::map<std::string, std::string>& from) { value = from; }

bool is_null(const Json& value) { return value.is_null(); }
bool is_object(const Json& value) { return value.is_object(); }
bool is_list(const Json& value) { return value.is_array(); }

const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

const std::string* unknown_member(const Json& object, const std::set<std::string>& known) {
  const auto& members = object.get_ref<const Json::object_t&>();
  const auto found = std::ranges::find_if(members, [&](const auto& m) { return !known.contains(m.first); });
  return found == members.end() ? nullptr : &found->first;
}

size_t items(const Json& list) { return list.size(); }
const Json& item(const Json& list, size_t index) { return list[index]; }

const char* get(const Json& value, bool& out) {
  if (!value.is_boolean()) return "true or false";
  out = value.get<bool>();
  return nullptr;
}

const char* get(const Json& value, uint64_t& out) {
  if (!value.is_number_unsigned()) return "a whole number from 0 up";
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
  if (!value.is_string()) return "a text";
  out = value.get<std::string>();
  return nullptr;
}

bool get_texts(const Json& value, std::map<std::string, std::string>& out, const std::string& path,
               std::string& error) {
  if (!value.is_object()) return refuse(value, "an object of texts", path, error);
  out.clear();
  for (const auto& [key, text] : value.items())
    if (const char* wanted = get(text, out[key])) return refuse(text, wanted, path + "." + key, error);
  return true;
}

std::string shown(const Json& value) {
  std::string text = text_of(value, -1, /*ascii=*/true);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

bool refuse(const Json& value, const char* wanted, const std::string& path, std::string& error) {
  error = fmt::format("{}: {} is not {}", path.empty() ? "document" : path, shown(value), wanted);
  return false;
}

std::string written(void (*fill)(Json& value, const void* document), const void* document, int indent) {
  Json value;
  fill(value, document);
  return text_of(value, indent);
}

Result<void, std::string> read(std::string_view text,
                               bool (*fill)(const Json& value, void* document, Reading, std::string& error),
                               void* document, Reading reading) {
  const auto json = parse(text);
  if (!json) return tl::unexpected(json.error());
  std::string error;
  if (!fill(*json, document, reading, error)) return tl::unexpected(error);
  return {};
}

}  // namespace detail
}  // namespace carve::api
