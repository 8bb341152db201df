#include "cli/edit_form.h"

#include "cli/terminal.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

namespace carve::cli {

using api::Json;

Json user_form(Json object) {
  object.erase("status");
  if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object())
    for (const char* const field : {"uid", "ownerUid", "generation", "resourceVersion", "createdAt"})
      metadata->erase(field);
  return object;
}

// The JSON parser bounds the depth (api::max_depth).
Json merge_patch(const Json& before, const Json& after) {
  Json out = Json::object();
  for (const auto& [key, value] : before.items())
    if (!after.contains(key)) out[key] = nullptr;
  for (const auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    if (old == before.end()) {
      out[key] = value;
    } else if (old->is_object() && value.is_object()) {
      if (Json inner = merge_patch(*old, value); !inner.empty()) out[key] = std::move(inner);
    } else if (*old != value) {
      out[key] = value;
    }
  }
  return out;
}

std::string editor_text(const std::string& object, std::string_view problem, std::string_view document) {
  std::string out = fmt::format(
      "# Change {}, save the file and leave the editor. If nothing is changed, or the file is empty,\n"
      "# the edit is cancelled. Lines at the top that begin with '#' are ignored.\n",
      object);
  if (!problem.empty()) out += "#\n# The last change was rejected:\n";
  for (size_t at = 0; at < problem.size();) {
    const size_t end = std::min(problem.find('\n', at), problem.size());
    out += fmt::format("# {}\n", harmless(problem.substr(at, end - at)));
    at = end + 1;
  }
  out += "#\n";
  out += document;
  return out;
}

std::string_view without_comment(std::string_view text) {
  while (text.starts_with('#')) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return text;
}

Result<Json, std::string> edited_document(std::string_view text) {
  const auto documents = yaml::documents_of(text);
  if (!documents) {
    std::string lines;
    for (const api::FieldError& error : documents.error())
      lines += (lines.empty() ? "" : "\n") + error.message;
    return tl::unexpected(lines);
  }
  if (documents->size() != 1)
    return tl::unexpected(fmt::format("the file has {} documents; keep one", documents->size()));
  auto json = api::parse(documents->front());
  if (!json) return tl::unexpected(json.error());
  return std::move(*json);
}

}  // namespace carve::cli
