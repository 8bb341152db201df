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

// Names of the pool types in the PAI-EAS console.
constexpr std::pair<std::string_view, PoolType> type_synonyms[] = {
    {"eas resource group", PoolType::eas},
    {"resource quota", PoolType::lingjun},
    {"lingjun resource quota", PoolType::lingjun},
    {"lingjun resources", PoolType::lingjun},
    {"public resource group", PoolType::public_group},
    {"public resources", PoolType::public_group}};

// Returns the type that a synonym names, or the given word.
Word<PoolType> type_of(const Word<PoolType>& given) {
  std::string lower = text(given);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto* const found =
      std::ranges::find(type_synonyms, lower, &std::pair<std::string_view, PoolType>::first);
  return found == std::end(type_synonyms) ? given : Word<PoolType>(found->second);
}

void check_taints(const std::vector<objects::PoolTaint>& taints, ErrorList& errors) {
  if (taints.size() > max_pool_taints)
    errors.add("spec.taints", "", "{} taints are too many; use at most {}", taints.size(), max_pool_taints);
  for (size_t i = 0; i < std::min(taints.size(), max_pool_taints); ++i) {
    const objects::PoolTaint& taint = taints[i];
    const std::string field = fmt::format("spec.taints[{}]", i);
    if (taint.key.empty() || taint.key.size() > max_label_bytes || taint.value.size() > max_label_bytes)
      errors.add(field, taint.key, "a key must have 1 to {} bytes and a value at most {}", max_label_bytes,
                 max_label_bytes);
    if (!taint.effect.value())
      errors.add(field + ".effect", text(taint.effect), "{} is not one of {}", typed(text(taint.effect)),
                 fmt::join(Words<TaintEffect>::words, ", "));
  }
}

}  // namespace

Result<objects::Pool, api::FieldErrors> read_pool(std::string_view json) {
  auto [pool, wrong] = api::read_partly<objects::Pool>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(pool.metadata));
  objects::PoolSpec& spec = pool.spec;
  spec.type = type_of(spec.type);
  if (!spec.type.value())
    errors.add("spec.type", text(spec.type), "{} is not one of {}, EAS Resource Group and Resource Quota",
               typed(text(spec.type)), fmt::join(Words<PoolType>::words, ", "));
  if (!spec.best_effort.value())
    errors.add("spec.bestEffort", text(spec.best_effort), "{} is neither allow nor refuse",
               typed(text(spec.best_effort)));
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
                         .type = spec.type.value().value_or(PoolType::eas),
                         .labels = {spec.labels.begin(), spec.labels.end()},
                         .synchronises_labels = spec.label_sync,
                         .is_sharing_enabled = spec.sharing};
  for (const objects::PoolTaint& taint : spec.taints)
    out.taints.insert({taint.key, taint.value, taint.effect.value().value_or(TaintEffect::no_schedule)});
  return out;
}

}  // namespace carve::objects
