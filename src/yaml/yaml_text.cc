#include "yaml/yaml_text.h"

#include <algorithm>
#include <cctype>

namespace carve::yaml {
namespace {

using api::Json;

// Words that YAML 1.1 reads as other types, in lower case.
constexpr std::string_view reserved[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};

std::string key_text(const std::string& key) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '/' || c == '-' || c == '_';
  };
  std::string lower = key;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool plain = !key.empty() && std::isalpha(static_cast<unsigned char>(key.front())) != 0 &&
                     std::ranges::all_of(key, is_plain) &&
                     std::ranges::find(reserved, lower) == std::end(reserved);
  return plain ? key : api::quoted(key);
}

bool is_block(const Json& value) { return value.is_structured() && !value.empty(); }

// Appends the value after "key:" or "-".
void append(std::string& out, const Json& value, size_t indent);

void append_members(std::string& out, const Json& object, size_t indent, bool first_is_begun) {
  for (const auto& [key, value] : object.items()) {
    if (!first_is_begun) out.append(indent, ' ');
    first_is_begun = false;
    out += key_text(key) + ":";
    append(out, value, indent);
  }
}

void append_items(std::string& out, const Json& list, size_t indent) {
  for (const Json& item : list) {
    out.append(indent, ' ');
    out += "-";
    if (item.is_object() && !item.empty()) {
      out += " ";
      append_members(out, item, indent + 2, /*first_is_begun=*/true);
    } else {
      append(out, item, indent);
    }
  }
}

void append(std::string& out, const Json& value, size_t indent) {
  if (!is_block(value)) {
    out += " " + value.dump() + "\n";
    return;
  }
  out += "\n";
  if (value.is_object())
    append_members(out, value, indent + 2, /*first_is_begun=*/false);
  else
    append_items(out, value, indent);
}

}  // namespace

std::string yaml_text(const Json& value) {
  std::string out;
  if (value.is_object())
    append_members(out, value, 0, /*first_is_begun=*/false);
  else
    append_items(out, value, 0);
  return out;
}

}  // namespace carve::yaml
