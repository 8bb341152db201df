#include "dialects/json_reader.h"

#include <charconv>

namespace carve::dialects {
namespace {

using api::Json;

constexpr size_t max_warnings = 64;

std::string path_of(const std::string& of, const std::string& key) {
  return of.empty() ? key : of + "." + key;
}

}  // namespace

std::string shown_json(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

JsonMember JsonReader::member(const JsonMember& of, const std::string& key) {
  if (!of) return {};
  const auto found = of.value->find(key);
  if (found == of.value->end()) return {};
  return {.value = &*found, .path = path_of(of.path, key)};
}

void JsonReader::refuse(const JsonMember& member, const std::string& wanted) {
  const std::string text = shown_json(*member.value);
  errors_.add(member.path, text, "{} is not {}{}", text, wanted, api::way_to_text(*member.value, wanted));
}

JsonMember JsonReader::entered(JsonMember member, bool fits, const char* wanted) {
  if (!member) return {};
  if (!fits) {
    if (read_.insert(member.value).second) refuse(member, wanted);
    return {};
  }
  entered_.insert(member.value);
  return member;
}

JsonMember JsonReader::object(const JsonMember& of, const std::string& key) {
  const JsonMember found = member(of, key);
  return entered(found, found && found.value->is_object(), "an object");
}

JsonMember JsonReader::list(const JsonMember& of, const std::string& key) {
  const JsonMember found = member(of, key);
  return entered(found, found && found.value->is_array(), "a list");
}

JsonMember JsonReader::item(const JsonMember& list, size_t index) {
  if (!list || index >= list.value->size()) return {};
  const Json& value = (*list.value)[index];
  return entered({.value = &value, .path = fmt::format("{}[{}]", list.path, index)}, value.is_object(),
                 "an object");
}

JsonMember JsonReader::nested(const JsonMember& of, const std::string& key) {
  for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
    if (const JsonMember found = nested(object(of, key.substr(0, dot)), key.substr(dot + 1))) return found;
  return member(of, key);
}

JsonMember JsonReader::value(const JsonMember& of, const std::string& key) {
  const JsonMember found = nested(of, key);
  if (found) read_.insert(found.value);
  return found;
}

JsonMember JsonReader::list_value(const JsonMember& of, const std::string& key) {
  const JsonMember found = nested(of, key);
  return entered(found, found && found.value->is_array(), "a list");
}

JsonMember JsonReader::named(const JsonMember& of, const std::string& key) {
  const JsonMember found = member(of, key);
  if (found) read_.insert(found.value);
  return found;
}

std::optional<uint64_t> JsonReader::whole(const JsonMember& member, uint64_t low, uint64_t high) {
  if (!member) return std::nullopt;
  if (member.value->is_number_unsigned()) {
    const auto number = member.value->get<uint64_t>();
    if (number >= low && number <= high) return number;
  }
  refuse(member, high == UINT64_MAX ? fmt::format("a whole number of at least {}", low)
                                    : fmt::format("a whole number from {} to {}", low, high));
  return std::nullopt;
}

std::optional<uint64_t> JsonReader::whole_as_text(const JsonMember& member, uint64_t low, uint64_t high) {
  if (!member) return std::nullopt;
  const Json& value = *member.value;
  const std::string given = value.is_string() ? value.get<std::string>() : value.dump();
  std::string_view digits = given;
  if (const size_t point = digits.find('.'); point != 0 && point != digits.npos &&
                                             point + 1 < digits.size() &&
                                             digits.find_first_not_of('0', point + 1) == digits.npos)
    digits = digits.substr(0, point);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
  const Json read = number;
  return is_number ? whole({.value = &read, .path = member.path}, low, high) : whole(member, low, high);
}

std::string JsonReader::text(const JsonMember& member) {
  if (!member) return "";
  if (member.value->is_string()) return member.value->get<std::string>();
  refuse(member, std::string(api::a_text));
  return "";
}

std::vector<std::string> JsonReader::texts(const JsonMember& member) {
  std::vector<std::string> out;
  if (!member) return out;
  if (!member.value->is_array()) {
    refuse(member, "a list");
    return out;
  }
  for (size_t i = 0; i < member.value->size(); ++i)
    out.push_back(text({.value = &(*member.value)[i], .path = fmt::format("{}[{}]", member.path, i)}));
  return out;
}

std::map<std::string, std::string> JsonReader::members(const JsonMember& object) {
  std::map<std::string, std::string> out;
  if (!object) return out;
  for (const auto& [key, value] : object.value->items()) {
    read_.insert(&value);
    out[key] = text({.value = &value, .path = path_of(object.path, key)});
  }
  return out;
}

void JsonReader::collect(const Json& value, const std::string& path, std::vector<std::string>& out) const {
  if (read_.contains(&value) || out.size() == max_warnings) return;
  if (!entered_.contains(&value)) {
    out.push_back(
        fmt::format("{} has no effect here", path.size() > 120 ? path.substr(0, 117) + "..." : path));
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect(member, path_of(path, key), out);
  } else {
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], fmt::format("{}[{}]", path, i), out);
  }
}

std::vector<std::string> JsonReader::without_effect() const {
  std::vector<std::string> out;
  collect(root_, "", out);
  return out;
}

}  // namespace carve::dialects
