#include "cluster/webhook/namespace_rules.h"

#include <algorithm>

#include "fronts/pod/dialects.h"
#include "fronts/pod/keys.h"
#include "wire/api/json_value.h"

namespace carve::cluster {
namespace {

using api::Json;

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Returns the limit that a quota's key counts: of "requests.K", "limits.K" or K.
std::string_view counted_by(std::string_view key) {
  for (const std::string_view prefix : {"requests.", "limits."})
    if (key.starts_with(prefix)) return key.substr(prefix.size());
  return key;
}

// Returns which of ours counts the same.
const char* our_key(std::string_view foreign) {
  const bool is_compute = foreign == fronts::keys::ack_core || foreign == fronts::keys::vke_core ||
                          foreign == fronts::keys::hami_cores;
  return is_compute ? fronts::keys::compute : fronts::keys::memory;
}

}  // namespace

Result<std::vector<std::string>, std::string> read_quota_keys(std::string_view json) {
  constexpr size_t max_levels = 64;
  const auto list = api::parse(json, api::Decimals::as_doubles, max_levels);
  if (!list) return tl::unexpected(list.error());
  const Json* const items = member(*list, "items");
  if (items == nullptr || !items->is_array())
    return tl::unexpected(std::string("it is no list of ResourceQuotas"));
  std::vector<std::string> out;
  for (const Json& item : *items) {
    const Json* const spec = member(item, "spec");
    const Json* const hard = spec == nullptr ? nullptr : member(*spec, "hard");
    if (hard == nullptr || !hard->is_object()) continue;
    for (const auto& [key, value] : hard->items()) out.push_back(key);
  }
  return out;
}

std::string refusal_in(const NamespaceRules& rules, const kube::PodRequest& request, bool shares) {
  const auto shared = std::ranges::find_if(
      request.containers, [](const auto& entry) { return !entry.second.exclusive.value_or(false); });
  if (shared != request.containers.end() && !rules.is_sharing.value_or(shares))
    return fmt::format(
        "container {}: sharing is disabled in namespace {}; ask for whole devices with {}, or label the "
        "namespace {}=enabled",
        shared->first, rules.name, fronts::keys::devices, sharing_label);
  for (const fronts::DialectRow& row : fronts::dialect_rows()) {
    if (row.dialect == fronts::Dialect::carve || text(row.dialect) != request.dialect) continue;
    for (const std::string& key : rules.quota_keys) {
      const std::string_view counted = counted_by(key);
      if (std::ranges::find(row.limits, counted) != row.limits.end())
        return fmt::format("namespace {} has a quota on {}, which counts nothing here; set requests.{}",
                           rules.name, key, our_key(counted));
    }
  }
  return "";
}

}  // namespace carve::cluster
