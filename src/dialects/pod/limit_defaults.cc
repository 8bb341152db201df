#include "dialects/pod/limit_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"

namespace carve::dialects {
namespace {

using api::Json;

constexpr const char* annotation = "kubernetes.io/limit-ranger";
constexpr std::string_view prefix = "LimitRanger plugin set: ";

Json* limits_of(Json& container, const char* kind = "limits") {
  if (!container.is_object() || !container.contains("resources")) return nullptr;
  Json& resources = container["resources"];
  if (!resources.is_object() || !resources.contains(kind) || !resources[kind].is_object()) return nullptr;
  return &resources[kind];
}

template <class F>
void each_container(Json& pod, F&& call) {
  if (!pod.contains("spec") || !pod["spec"].is_object()) return;
  for (const char* list : lists_with_resources) {
    if (!pod["spec"].contains(list) || !pod["spec"][list].is_array()) continue;
    for (Json& container : pod["spec"][list])
      if (container.is_object()) call(list, container);
  }
}

bool has_foreign_limit(Json& pod) {
  bool out = false;
  each_container(pod, [&](const char*, Json& container) {
    const Json* const limits = limits_of(container);
    for (const DialectRow& row : dialect_rows())
      for (const char* key : row.limits)
        out |= limits != nullptr && row.dialect != Dialect::carve && limits->contains(key);
  });
  return out;
}

// "carve.dev/compute, carve.dev/memory limit for container c"
void add_item(std::string_view item, std::vector<DefaultedLimit>& out) {
  for (const std::string_view end : {" limit for container ", " limit for init container "}) {
    const size_t at = item.find(end);
    if (at == item.npos) continue;
    const std::string container(item.substr(at + end.size()));
    std::string_view keys = item.substr(0, at);
    while (!keys.empty()) {
      const size_t comma = std::min(keys.find(", "), keys.size());
      if (keys.substr(0, comma).starts_with(keys::prefix))
        out.push_back({container, std::string(keys.substr(0, comma))});
      keys.remove_prefix(std::min(comma + 2, keys.size()));
    }
  }
}

void erase_limit(Json& container, const std::string& key) {
  for (const char* kind : {"limits", "requests"})
    if (Json* const of = limits_of(container, kind)) of->erase(key);
}

}  // namespace

std::vector<DefaultedLimit> defaulted_limits(const Json& pod) {
  std::vector<DefaultedLimit> out;
  if (!pod.is_object() || !pod.contains("metadata") || !pod["metadata"].is_object() ||
      !pod["metadata"].contains("annotations"))
    return out;
  const std::string text = text_member(pod["metadata"]["annotations"], annotation);
  std::string_view rest = text;
  if (!rest.starts_with(prefix)) return out;
  rest.remove_prefix(prefix.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find("; "), rest.size());
    add_item(rest.substr(0, end), out);
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return out;
}

void remove_limit(Json& pod, const DefaultedLimit& limit) {
  each_container(pod, [&](const char*, Json& container) {
    if (text_member(container, "name") == limit.container) erase_limit(container, limit.key);
  });
}

void restore_defaults(Json& pod, const Json& from, const std::vector<DefaultedLimit>& defaulted) {
  Json before = from;
  for (const DefaultedLimit& limit : defaulted) {
    Json value;
    each_container(before, [&](const char*, Json& container) {
      const Json* const limits = limits_of(container);
      if (text_member(container, "name") == limit.container && limits != nullptr &&
          limits->contains(limit.key))
        value = (*limits)[limit.key];
    });
    if (value.is_null()) continue;
    each_container(pod, [&](const char*, Json& container) {
      if (text_member(container, "name") != limit.container) return;
      const Json* const limits = limits_of(container);
      if (limits != nullptr && limits->contains(limit.key)) return;
      Json& resources = container["resources"];
      if (!resources.is_object()) resources = Json::object();
      if (!resources.contains("limits") || resources["limits"].is_null())
        resources["limits"] = Json::object();
      if (resources["limits"].is_object()) resources["limits"][limit.key] = value;
    });
  }
}

std::vector<std::string> remove_defaults(Json& pod, const std::vector<DefaultedLimit>& defaulted) {
  std::vector<std::string> warnings;
  if (defaulted.empty()) return warnings;
  const bool is_foreign = has_foreign_limit(pod);
  each_container(pod, [&](std::string_view list, Json& container) {
    const std::string name = text_member(container, "name");
    std::vector<std::string> keys;
    for (const DefaultedLimit& limit : defaulted)
      if (limit.container == name) keys.push_back(limit.key);
    const Json* const limits = limits_of(container);
    if (keys.empty() || limits == nullptr) return;
    const auto is_default = [&](const std::string& key) {
      return std::ranges::find(keys, key) != keys.end();
    };
    bool is_written = false, has_memory = false;
    for (const char* key : {keys::memory, keys::compute, keys::devices}) {
      is_written |= limits->contains(key) && !is_default(key);
      has_memory |= limits->contains(key) && key == std::string_view(keys::memory);
    }
    const bool is_init = list == "initContainers" && text_member(container, "restartPolicy") != "Always";
    if (is_foreign || (!is_written && (is_init || !has_memory))) {
      for (const std::string& key : keys) erase_limit(container, key);
    } else if (!is_written) {
      warnings.push_back(fmt::format(
          "container {} has a slice because a LimitRange of the namespace sets {} (a max is also a default)",
          name, keys::memory));
    }
  });
  return warnings;
}

}  // namespace carve::dialects
