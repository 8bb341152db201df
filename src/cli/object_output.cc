#include "cli/object_output.h"

#include <algorithm>

#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

constexpr size_t max_pages = 1000;  // A server that returns `continue` forever does not block the client.

// Returns whether YAML parses the unquoted text as this text and not as a number, boolean or null.
bool is_plain(const std::string& text) {
  static constexpr std::string_view words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto may_follow = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  };
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, may_follow) &&
         std::ranges::find(words, lower) == std::end(words);
}

// Returns whether the text can be written as a block of lines, which is easier to read and to edit than one
// line with escapes. Texts that the two versions of YAML read differently are quoted.
bool is_block(const std::string& text) {
  const auto is_printable = [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); };
  return text.find('\n') != std::string::npos && text.front() != '\n' && text.front() != ' ' &&
         !text.ends_with("\n\n") && std::ranges::all_of(text, is_printable);
}

// Writes a block at the indent: "|" and its lines, with "|-" if the text has no line break at its end.
void write_block(std::string_view text, size_t indent, std::string& out) {
  const bool ends_with_break = text.ends_with('\n');
  out += ends_with_break ? " |\n" : " |-\n";
  if (ends_with_break) text.remove_suffix(1);
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += std::string(indent, ' ');
    out += text.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
}

// A JSON scalar is also a YAML 1.2 scalar; a text is quoted unless it is plain.
std::string scalar(const api::Json& value) {
  if (value.is_string() && is_plain(value.get<std::string>())) return value.get<std::string>();
  return value.dump();
}

// Writes the value after its key or dash. The JSON parser bounds the depth (api::max_depth).
void write_yaml(const api::Json& value, size_t indent, std::string& out) {
  const std::string blanks(indent, ' ');
  if (value.is_string() && is_block(value.get_ref<const std::string&>())) {
    write_block(value.get_ref<const std::string&>(), indent, out);
  } else if (!value.is_structured()) {
    out += " " + scalar(value) + "\n";
  } else if (value.empty()) {
    out += value.is_array() ? " []\n" : " {}\n";
  } else if (value.is_array()) {
    out += "\n";
    for (const api::Json& item : value) {
      out += blanks + "-";
      write_yaml(item, indent + 2, out);
    }
  } else {
    out += "\n";
    for (const auto& [key, member] : value.items()) {
      out += blanks + (is_plain(key) ? key : api::Json(key).dump()) + ":";
      write_yaml(member, indent + 2, out);
    }
  }
}

}  // namespace

client::Answer<std::string> whole_list(const client::Client& controller, const std::string& target) {
  api::Json whole;
  std::string next;
  const char* const separator = target.find('?') == std::string::npos ? "?" : "&";
  for (size_t page = 0; page < max_pages; ++page) {
    auto text = controller.text(next.empty() ? target : target + separator + "continue=" + next);
    if (!text) return text;
    auto json = api::parse(*text);
    if (!json || !json->is_object() || !(*json)["items"].is_array())
      return tl::unexpected(
          api::Problem{.title = "list", .detail = "the controller's response is not a list"});
    const api::Json metadata = json->value("metadata", api::Json::object());
    next = metadata.contains("continue") && metadata["continue"].is_string()
               ? metadata["continue"].get<std::string>()
               : "";
    if (whole.is_null())
      whole = std::move(*json);
    else
      for (api::Json& item : (*json)["items"]) whole["items"].push_back(std::move(item));
    if (!next.empty()) continue;
    if (whole.contains("metadata") && whole["metadata"].is_object()) whole["metadata"].erase("continue");
    return whole.dump();
  }
  return tl::unexpected(
      api::Problem{.title = "list", .detail = fmt::format("the list has more than {} pages", max_pages)});
}

std::string yaml_of(const std::string& json) {
  const auto value = api::parse(json);
  if (!value) return json;
  std::string out;
  write_yaml(*value, 0, out);
  return out.substr(out.find_first_not_of("\n "));
}

}  // namespace carve::cli
