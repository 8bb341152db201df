#include "dialects/explain/translation.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "dialects/pod/program_container.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json_value.h"

namespace carve::dialects {
namespace {

using api::Json;

// The keys of a path are separated by blanks, because keys contain dots and slashes. In a manifest, POD means
// the path of the object that contains the pod's metadata and spec, and CONTAINER means the path of the
// container that runs.
struct Rule {
  std::string_view dialects;  // Separated by blanks.
  std::string_view from;
  std::string_view to;  // A path from {metadata, spec, slice}.
  std::string_view message;
};

constexpr std::string_view all_manifests = "ack vke hami kubernetes";

constexpr Rule rules[] = {
    {"eas", "metadata name", "metadata name", "in lower case, with - instead of _"},
    {"eas", "name", "metadata name", "in lower case, with - instead of _"},
    {"eas", "metadata instance", "spec replicas", "the number of replicas"},
    {"eas", "metadata resource", "spec pool", "the node pool"},
    {"eas", "metadata gpu_memory", "spec gpu memory",
     "GB (10^9 bytes) on instance types ml*, GiB on all others; the type is the document's or that of the "
     "pool's nodes"},
    {"eas", "metadata gpu_core_percentage", "spec gpu share", "percent of one device; requires gpu_memory"},
    {"eas", "metadata gpu_core_percentage", "spec gpu policy", "PAI-EAS treats a share as a maximum"},
    {"eas", "metadata gpu", "spec gpu devices",
     "whole devices; gpu_memory and gpu_core_percentage are ignored"},
    {"eas", "metadata cpu", "spec cpu limit", "cores, requested and limited"},
    {"eas", "metadata memory", "spec memory limit", "MB (10^6 bytes), requested and limited"},
    {"eas", "metadata rolling_strategy.max_surge", "spec update maxSurge",
     "a percentage of instances is rounded up"},
    {"eas", "metadata rolling_strategy.max_unavailable", "spec update maxUnavailable",
     "a percentage of instances is rounded down"},
    {"eas", "autoscaler min", "spec autoscale min", "minimum number of replicas"},
    {"eas", "autoscaler max", "spec autoscale max", "maximum number of replicas"},
    {"eas", "autoscaler strategies", "spec autoscale target", "target load per replica"},
    {"eas", "metadata eas.termination_grace_period", "spec terminationGracePeriodSeconds",
     "seconds from SIGTERM to SIGKILL"},
    {"eas", "containers 0 image", "spec run image", "the first container"},
    {"eas", "containers 0 command", "spec run command", "a line for /bin/sh -c"},
    {"eas", "containers 0 script", "spec run command", "a line for /bin/sh -c"},
    {"eas", "containers 0 env", "spec run env", "name and value of each variable"},
    {"eas", "containers 0 port", "spec port", "each replica gets its own PORT"},

    {"application", "spec gpu memory", "spec gpu memory",
     "MiB unless it has a unit; a total, divided equally over the devices"},
    {"application", "spec gpu compute", "spec gpu share",
     "of one device; with multiDevice a total, divided equally over the devices"},
    {"application", "spec gpu policy", "spec gpu policy", "the policy's name, or Volcengine's name for it"},
    {"application", "spec gpu devices", "spec gpu devices", "devices of each replica"},
    {"application", "spec gpu type", "spec gpu exclusive", "type GPU requests whole devices"},

    {"ack", "CONTAINER resources limits aliyun.com/gpu-mem", "spec gpu memory",
     "in the node's memory unit; divided equally over the devices"},
    {"ack", "CONTAINER resources limits aliyun.com/gpu-core.percentage", "spec gpu share",
     "percent of one device; also sets isolation to memory+compute"},
    {"ack", "POD metadata labels aliyun.com/gpu-count", "spec gpu devices", "devices of each replica"},
    {"vke", "CONTAINER resources limits vke.volcengine.com/mgpu-memory", "spec gpu memory",
     "MiB in total, divided equally over the devices"},
    {"vke", "CONTAINER resources limits vke.volcengine.com/mgpu-core", "spec gpu share",
     "percent in total, divided equally over the devices; also sets isolation to memory+compute; without "
     "memory, "
     "100 "
     "is one whole device"},
    {"vke", "POD metadata annotations vke.volcengine.com/container-multiple-gpu", "spec gpu devices",
     "devices of each replica"},
    {"vke", "POD metadata annotations vke.volcengine.com/mgpu-compute-policy", "spec gpu policy",
     "the policy's name"},
    {"hami", "CONTAINER resources limits nvidia.com/gpu", "spec gpu devices", "devices of each replica"},
    {"hami", "CONTAINER resources limits nvidia.com/gpumem", "spec gpu memory", "MiB of each device"},
    {"hami", "CONTAINER resources limits nvidia.com/gpumem-percentage", "spec gpu memory",
     "percent of each device's usable memory"},
    {"hami", "CONTAINER resources limits nvidia.com/gpucores", "spec gpu share", "percent of each device"},
    {"kubernetes", "CONTAINER resources limits nvidia.com/gpu", "spec gpu devices", "whole devices"},
    {"kubernetes", "CONTAINER resources limits carve.dev/memory", "spec gpu memory",
     "a total, divided equally over the devices"},
    {"kubernetes", "CONTAINER resources limits carve.dev/compute", "spec gpu share",
     "percent in total, divided equally over the devices; also sets isolation to memory+compute"},
    {"kubernetes", "CONTAINER resources limits carve.dev/devices", "spec gpu devices",
     "devices of each replica; whole devices if nothing else is requested"},
    {"kubernetes", "POD metadata annotations carve.dev/parts", "spec gpu parts",
     "memory and share of each device"},
    {all_manifests, "POD metadata annotations carve.dev/policy", "spec gpu policy", "the policy's name"},
    {all_manifests, "POD metadata annotations carve.dev/isolation", "spec gpu isolation",
     "the isolation's name"},
    {all_manifests, "spec replicas", "spec replicas", "the number of replicas"},
    {all_manifests, "CONTAINER image", "spec run image",
     "the container that requests a GPU, or else the first"},
    {all_manifests, "CONTAINER command", "spec run command", "the program; replaces the ENTRYPOINT"},
    {all_manifests, "CONTAINER args", "spec run args", "with an image; otherwise appended to the command"},
    {all_manifests, "CONTAINER env", "spec run env", "variables that have a value"},
    {all_manifests, "CONTAINER resources limits cpu", "spec cpu limit", "cores"},
    {all_manifests, "CONTAINER resources limits memory", "spec memory limit", "Gi is GiB, G is GB"},
};

// The second step, which all kinds share: the translation into the request for each slice.
constexpr Rule slice_rules[] = {
    {"", "spec gpu memory", "slice memory_bytes", "bytes of each device"},
    {"", "spec gpu memory", "slice memory_units", "in the node's memory unit at the time of the grant"},
    {"", "spec gpu memory", "slice memory_bp", "basis points of each device's usable memory"},
    {"", "spec gpu share", "slice share_bp", "basis points of each device's time"},
    {"", "spec gpu devices", "slice devices", "number of devices; each has this memory and share"},
    {"", "spec gpu exclusive", "slice exclusive", "whole devices"},
    {"", "spec gpu parts", "slice parts",
     "memory and share of each device, in the order of the program's devices"},
};

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// Parses the index in a list's key.
std::optional<size_t> index_of(std::string_view key) {
  size_t out = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), out);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return out;
}

// Returns the member of the object or the item of the list. A key with a dot may also match nested objects.
const Json* member_at(const Json& of, std::string_view key) {
  if (of.is_array()) {
    const auto index = index_of(key);
    return index && *index < of.size() ? &of[*index] : nullptr;
  }
  if (!of.is_object()) return nullptr;
  if (const auto found = of.find(std::string(key)); found != of.end()) return &*found;
  const size_t dot = key.find('.');
  const Json* const outer = dot == std::string_view::npos ? nullptr : member_at(of, key.substr(0, dot));
  return outer == nullptr ? nullptr : member_at(*outer, key.substr(dot + 1));
}

// Returns the value at the path. PAI's SDK may write a path as one key with dots.
const Json* found_at(const Json& document, std::string_view path) {
  std::string flat(path);
  std::ranges::replace(flat, ' ', '.');
  if (const auto found = document.is_object() ? document.find(flat) : document.end(); found != document.end())
    return &*found;
  const Json* value = &document;
  while (value != nullptr && !path.empty()) {
    const size_t end = std::min(path.find(' '), path.size());
    value = member_at(*value, path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return value;
}

// Returns the path in this document, because the pod of a Deployment is in its template.
std::string path_in(const Json& document, std::string_view path) {
  const bool has_template = found_at(document, "spec template") != nullptr;
  constexpr std::string_view pod = "POD ", container = "CONTAINER ";
  const std::string prefix = has_template ? "spec template " : "";
  if (path.starts_with(pod)) return prefix + std::string(path.substr(pod.size()));
  if (path.starts_with(container)) {
    const Json* const spec = found_at(document, prefix + "spec");
    return fmt::format("{}spec containers {} {}", prefix, spec == nullptr ? 0 : program_container(*spec),
                       path.substr(container.size()));
  }
  return std::string(path);
}

// Returns the path in the form in which users write it:
// "spec.containers[0].resources.limits.aliyun.com/gpu-mem".
std::string shown_path(std::string_view path) {
  std::string out;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find(' ', at), path.size());
    const std::string_view key = path.substr(at, end - at);
    out += index_of(key) ? fmt::format("[{}]", key) : (out.empty() ? "" : ".") + std::string(key);
    at = end + 1;
  }
  return out;
}

std::string shown_value(const Json& value) {
  constexpr size_t max_bytes = 200;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.size() <= max_bytes ? text : text.substr(0, max_bytes) + "...";
}

Json json_of(const std::string& text) { return api::parse(text).value_or(Json()); }

// Returns the request for each slice, without default values.
Json slice_of(const objects::ServiceSpec& spec) {
  Json out = Json::object();
  const auto terms = objects::terms_of(spec);
  if (!terms || !terms->gpu) return out;
  const Amounts& gpu = *terms->gpu;
  if (gpu.memory_bytes) out["memory_bytes"] = *gpu.memory_bytes;
  if (gpu.memory_units) out["memory_units"] = *gpu.memory_units;
  if (gpu.memory_bp) out["memory_bp"] = *gpu.memory_bp;
  if (gpu.share_bp) out["share_bp"] = *gpu.share_bp;
  if (gpu.devices > 1) out["devices"] = gpu.devices;
  if (gpu.exclusive) out["exclusive"] = true;
  if (!gpu.parts.empty()) out["parts"] = carve::text(gpu.parts);
  return out;
}

// Returns the row if the document has the field. `to` is the path of its translation, if any.
std::optional<api::TranslatedField> row_of(const Rule& rule, const Json& from, const Json& to) {
  const std::string path = path_in(from, rule.from);
  const Json* const given = found_at(from, path);
  if (given == nullptr || given->is_null()) return std::nullopt;
  const Json* const result = found_at(to, rule.to);
  const bool has_result = result != nullptr && !result->is_null() && *result != Json("");
  return api::TranslatedField{.field = shown_path(path),
                              .value = shown_value(*given),
                              .becomes = has_result ? shown_path(rule.to) : "",
                              .result = has_result ? shown_value(*result) : "",
                              .rule = std::string(rule.message)};
}

}  // namespace

std::string field_in_source(std::string_view dialect, std::string_view source, std::string_view field) {
  std::optional<Json> document;  // Parsed only if a rule matches the field.
  std::string out(field);
  size_t matched = 0;  // Length of the longest rule that matches the field.
  for (const Rule& rule : rules) {
    const std::string to = shown_path(rule.to);
    const bool is_within = field.starts_with(to) &&
                           (field.size() == to.size() || field[to.size()] == '.' || field[to.size()] == '[');
    if (!has_word(rule.dialects, dialect) || !is_within || to.size() <= matched) continue;
    if (!document) document = json_of(std::string(source));
    const std::string path = path_in(*document, rule.from);
    if (found_at(*document, path) == nullptr) continue;
    matched = to.size();
    out = shown_path(path) + std::string(field.substr(to.size()));
  }
  return out;
}

std::vector<api::TranslatedField> translation_of(const TranslatedDocument& document) {
  const Json source = json_of(std::string(document.source));
  const Json target{{"metadata", json_of(api::write(document.metadata))},
                    {"spec", json_of(api::write(document.spec))},
                    {"slice", slice_of(document.spec)}};
  std::vector<api::TranslatedField> out;
  for (const Rule& rule : rules)
    if (has_word(rule.dialects, document.dialect))
      if (auto row = row_of(rule, source, target)) out.push_back(std::move(*row));
  for (const Rule& rule : slice_rules)
    if (auto row = row_of(rule, target, target); row && !row->becomes.empty()) out.push_back(std::move(*row));
  return out;
}

}  // namespace carve::dialects
