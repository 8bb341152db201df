#include "fronts/pool_check.h"

#include <algorithm>
#include <array>

#include "core/label.h"
#include "fronts/error_list.h"
#include "fronts/label_synonyms.h"
#include "fronts/service_terms.h"
#include "wire/api/json.h"

namespace carve::fronts {
namespace {

using workload::PoolType;

constexpr std::array pool_types = {PoolType::eas, PoolType::lingjun, PoolType::public_group, PoolType::ecs,
                                   PoolType::vci};

std::string type_names() {
  std::string out;
  for (const PoolType type : pool_types) out += fmt::format("{}{}", out.empty() ? "" : ", ", text(type));
  return out;
}

void check_taints(const std::vector<objects::PoolTaint>& taints, ErrorList& errors) {
  if (taints.size() > max_pool_taints)
    errors.add("spec.taints", "", "{} taints are too many; there are at most {}", taints.size(),
               max_pool_taints);
  for (size_t i = 0; i < std::min(taints.size(), max_pool_taints); ++i) {
    const objects::PoolTaint& taint = taints[i];
    const std::string field = fmt::format("spec.taints[{}]", i);
    if (taint.key.empty() || taint.key.size() > max_label_bytes || taint.value.size() > max_label_bytes)
      errors.add(field, taint.key, "a key has 1 to {} bytes and a value at most {}", max_label_bytes,
                 max_label_bytes);
    if (std::ranges::find(taint_effects, taint.effect) == std::end(taint_effects))
      errors.add(field + ".effect", taint.effect, "{} is none of {}", typed(taint.effect),
                 fmt::join(taint_effects, ", "));
  }
}

}  // namespace

Result<objects::Pool, api::FieldErrors> read_pool(std::string_view json) {
  auto [pool, wrong] = api::read_partly<objects::Pool>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(pool.metadata));
  objects::PoolSpec& spec = pool.spec;
  if (std::ranges::find(pool_types, spec.type, [](PoolType type) { return text(type); }) == pool_types.end())
    errors.add("spec.type", spec.type, "{} is none of {}", typed(spec.type), type_names());
  if (spec.best_effort != "allow" && spec.best_effort != "refuse")
    errors.add("spec.bestEffort", spec.best_effort, "{} is neither allow nor refuse",
               typed(spec.best_effort));
  check_taints(spec.taints, errors);
  auto labels = our_labels(spec.labels, "spec.labels");
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

}  // namespace carve::fronts
