#include "objects/rules/pool_check.h"

#include <algorithm>
#include <array>

#include "core/label.h"
#include "dialects/label_synonyms.h"
#include "objects/error_list.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::objects {
namespace {

using workload::PoolType;

constexpr std::array pool_types = {PoolType::eas, PoolType::lingjun, PoolType::public_group, PoolType::ecs,
                                   PoolType::vci};

std::string type_names() {
  std::string out;
  for (const PoolType type : pool_types) out += fmt::format("{}{}", out.empty() ? "" : ", ", text(type));
  return out;
}

// Names in the PAI-EAS console.
constexpr std::pair<std::string_view, PoolType> type_synonyms[] = {
    {"eas resource group", PoolType::eas},
    {"resource quota", PoolType::lingjun},
    {"lingjun resource quota", PoolType::lingjun},
    {"lingjun resources", PoolType::lingjun},
    {"public resource group", PoolType::public_group},
    {"public resources", PoolType::public_group}};

// Returns the type in the case that spec.type has here; a synonym becomes Carve's type.
std::string type_of(const std::string& given) {
  std::string lower = given;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto* const found =
      std::ranges::find(type_synonyms, lower, &std::pair<std::string_view, PoolType>::first);
  return found == std::end(type_synonyms) ? given : std::string(text(found->second));
}

void check_taints(const std::vector<objects::PoolTaint>& taints, ErrorList& errors) {
  if (taints.size() > max_pool_taints)
    errors.add("spec.taints", "", "{} taints are too many; the maximum is {}", taints.size(),
               max_pool_taints);
  for (size_t i = 0; i < std::min(taints.size(), max_pool_taints); ++i) {
    const objects::PoolTaint& taint = taints[i];
    const std::string field = fmt::format("spec.taints[{}]", i);
    if (taint.key.empty() || taint.key.size() > max_label_bytes || taint.value.size() > max_label_bytes)
      errors.add(field, taint.key, "a key has 1 to {} bytes and a value at most {}", max_label_bytes,
                 max_label_bytes);
    if (std::ranges::find(taint_effects, taint.effect) == std::end(taint_effects))
      errors.add(field + ".effect", taint.effect, "{} is not one of {}", typed(taint.effect),
                 fmt::join(taint_effects, ", "));
  }
}

}  // namespace

Result<objects::Pool, api::FieldErrors> read_pool(std::string_view json) {
  auto [pool, wrong] = api::read_partly<objects::Pool>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(pool.metadata));
  objects::PoolSpec& spec = pool.spec;
  spec.type = type_of(spec.type);
  if (std::ranges::find(pool_types, spec.type, [](PoolType type) { return text(type); }) == pool_types.end())
    errors.add("spec.type", spec.type, "{} is not one of {}, EAS Resource Group and Resource Quota",
               typed(spec.type), type_names());
  if (spec.best_effort != "allow" && spec.best_effort != "refuse")
    errors.add("spec.bestEffort", spec.best_effort, "{} is neither allow nor refuse",
               typed(spec.best_effort));
  check_taints(spec.taints, errors);
  auto labels = dialects::our_labels(spec.labels, "spec.labels");
  if (labels)
    spec.labels = {labels->begin(), labels->end()};
  else
    errors.add_all(labels.error());
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(pool);
}

workload::NodePool node_pool(std::string name, const objects::PoolSpec& spec) {
  workload::NodePool out{.name = std::move(name),
                         .labels = {spec.labels.begin(), spec.labels.end()},
                         .synchronises_labels = spec.label_sync,
                         .is_sharing_enabled = spec.sharing};
  const auto type =
      std::ranges::find(pool_types, spec.type, [](PoolType one) { return workload::text(one); });
  if (type != pool_types.end()) out.type = *type;
  for (const objects::PoolTaint& taint : spec.taints)
    out.taints.insert({taint.key, taint.value, taint.effect});
  return out;
}

}  // namespace carve::objects
