// Changes that the client makes to an EAS document: `modify NAME -Dmetadata.instance=2`.
#include <algorithm>
#include <charconv>
#include <optional>

#include "dialects/eas/eas.h"
#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::dialects {
namespace {

using api::Json;

// A step of a path: a key of an object, or an index of a list.
struct Step {
  std::string key;
  std::optional<size_t> index;
};

// Parses "containers[0].port". Returns no value if the text is not a path.
std::optional<std::vector<Step>> steps_of(std::string_view path) {
  std::vector<Step> steps;
  while (!path.empty()) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    if (end == 0) return std::nullopt;
    steps.push_back({.key = std::string(path.substr(0, end)), .index = std::nullopt});
    path.remove_prefix(end);
    while (path.starts_with('[')) {
      size_t index = 0;
      const auto [stop, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
      if (error != std::errc() || stop == path.data() + path.size() || *stop != ']') return std::nullopt;
      steps.push_back({.key = {}, .index = index});
      path.remove_prefix(static_cast<size_t>(stop + 1 - path.data()));
    }
    if (path.empty()) break;
    if (path.front() != '.' || path.size() == 1) return std::nullopt;
    path.remove_prefix(1);
  }
  return steps.empty() || steps.size() > api::max_depth ? std::nullopt : std::optional(steps);
}

// Returns the value at the step, which is added if it is missing. Fails with a message.
Result<Json*, std::string> enter(Json& at, const Step& step, const std::string& path) {
  const std::string shown = path.empty() ? "the document" : path;
  if (step.index) {
    if (at.is_null()) at = Json::array();
    if (!at.is_array()) return tl::unexpected(fmt::format("{} is not a list", shown));
    if (*step.index > at.size())
      return tl::unexpected(
          fmt::format("{} is a list of length {}; the next index is {}", shown, at.size(), at.size()));
    if (*step.index == at.size()) at.emplace_back(nullptr);
    return &at[*step.index];
  }
  if (at.is_null()) at = Json::object();
  if (at.is_array())
    return tl::unexpected(
        fmt::format("{0} is a list of length {1}; its first item is {0}[0]", shown, at.size()));
  if (!at.is_object()) return tl::unexpected(fmt::format("{} is not an object", shown));
  return &at[step.key];
}

// Sets one "path=value".
Result<void, std::string> set(Json& document, const std::string& change) {
  const size_t equal = change.find('=');
  const auto steps =
      equal == std::string::npos ? std::nullopt : steps_of(std::string_view(change).substr(0, equal));
  if (!steps) return tl::unexpected(std::string("must be PATH=VALUE; try metadata.instance=2"));
  Json* at = &document;
  std::string path;
  for (const Step& step : *steps) {
    const auto next = enter(*at, step, path);
    if (!next) return tl::unexpected(next.error());
    at = *next;
    path += step.index ? fmt::format("[{}]", *step.index) : (path.empty() ? "" : ".") + step.key;
  }
  const std::string text = change.substr(equal + 1);
  auto value = api::parse(text);
  *at = value ? std::move(*value) : Json(text);
  return {};
}

// Sets a flat key of the fragment, such as "metadata.gpu_memory", in the nested object if the document has
// that member there.
void set_nested(Json& document, const std::string& key, const Json& value) {
  if (key.find('.') == std::string::npos || value.is_object()) return;
  Json* at = &document;
  std::string_view rest = key;
  for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    const auto next = at->find(std::string(rest.substr(0, dot)));
    if (next == at->end() || !next->is_object()) return;
    at = &*next;
    rest.remove_prefix(dot + 1);
  }
  const auto member = at->find(std::string(rest));
  if (member == at->end()) return;
  if (value.is_null())
    at->erase(member);
  else
    *member = value;
  document.erase(key);
}

// Replaces the document's name, which may be in another place than the fragment's.
void set_name(Json& document, const std::string& name) {
  const bool has_place = !document.contains("metadata") || document["metadata"].is_object();
  if (name.empty() || !has_place) return;
  document.erase("name");
  document.erase("metadata.name");
  document["metadata"]["name"] = name;
}

// Returns the document's text. Fails if the text could not be parsed again.
Result<std::string, api::FieldErrors> text_of(const Json& document) {
  std::string text = document.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  const auto again = api::parse(text);
  if (again) return text;
  objects::ErrorList errors;
  errors.add_message("", "", again.error());
  return tl::unexpected(errors.all());
}

}  // namespace

Result<std::string, api::FieldErrors> merged(std::string_view json, std::string_view fragment) {
  objects::ErrorList errors;
  auto document = api::parse(json);
  const auto changes = api::parse(fragment);
  if (!document) errors.add_message("", "", document.error());
  if (!changes) errors.add_message("", "", changes.error());
  if (changes && !changes->is_object()) errors.add_message("", "", "the fragment is not an object");
  if (!errors.empty()) return tl::unexpected(errors.all());
  document->merge_patch(*changes);
  for (const auto& [key, value] : changes->items()) set_nested(*document, key, value);
  set_name(*document, eas_name(fragment));
  return text_of(*document);
}

Result<std::string, api::FieldErrors> modified(std::string_view json,
                                               std::span<const std::string> overrides) {
  objects::ErrorList errors;
  auto document = api::parse(json);
  if (!document) {
    errors.add_message("", "", document.error());
    return tl::unexpected(errors.all());
  }
  for (const std::string& change : overrides)
    if (const auto result = set(*document, change); !result)
      errors.add_message(change.substr(0, change.find('=')), change,
                         fmt::format("-D{}: {}", objects::typed(change), result.error()));
  if (!errors.empty()) return tl::unexpected(errors.all());
  return text_of(*document);
}

}  // namespace carve::dialects
