#include "kubernetes/coordinator/webhook/namespace_rules.h"

#include <algorithm>

#include "dialects/pod/dialects.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;

// Returns the resource that a quota's key counts: K for "requests.K", "limits.K" or K.
std::string_view counted_by(std::string_view key) {
  for (const std::string_view prefix : {"requests.", "limits."})
    if (key.starts_with(prefix)) return key.substr(prefix.size());
  return key;
}

// Returns Carve's resource for the same amount.
const char* our_key(std::string_view foreign) {
  const bool is_compute = foreign == dialects::keys::ack_core || foreign == dialects::keys::vke_core ||
                          foreign == dialects::keys::hami_cores;
  return is_compute ? dialects::keys::compute : dialects::keys::memory;
}

bool has_quota_on(const NamespaceRules& rules, std::string_view limit) {
  return std::ranges::any_of(rules.quota_keys,
                             [&](const std::string& key) { return counted_by(key) == limit; });
}

// As with cpu and memory in Kubernetes, rejects a container that does not request an amount that a quota
// counts. Otherwise a percentage of a device or a whole device would bypass a quota on bytes.
std::string uncounted_amount(const NamespaceRules& rules, const kubernetes::PodRequest& request) {
  namespace keys = dialects::keys;
  const bool counts_memory = has_quota_on(rules, keys::memory),
             counts_compute = has_quota_on(rules, keys::compute);
  for (const auto& [container, slice] : request.containers) {
    const bool is_exclusive = slice.amounts.exclusive;
    if (counts_memory && !kubernetes::total_memory(slice.amounts))
      return fmt::format(
          "container {}: namespace {} has a quota on requests.{}, which does not count {}; request an amount "
          "of memory",
          container, rules.name, keys::memory,
          is_exclusive ? "whole devices" : "a percentage of a device's memory");
    if (counts_compute && !is_exclusive && !slice.amounts.has_share())
      return fmt::format(
          "container {}: namespace {} has a quota on requests.{}; request a share of compute as well",
          container, rules.name, keys::compute);
  }
  return "";
}

}  // namespace

Result<std::vector<std::string>, std::string> read_quota_keys(std::string_view json) {
  constexpr size_t max_levels = 64;
  const auto list = api::parse(json, api::Decimals::as_doubles, max_levels);
  if (!list) return tl::unexpected(list.error());
  const Json* const items = dialects::member(*list, "items");
  if (items == nullptr || !items->is_array())
    return tl::unexpected(std::string("not a list of ResourceQuotas"));
  std::vector<std::string> out;
  for (const Json& item : *items) {
    const Json* const hard = dialects::member(dialects::member(item, "spec"), "hard");
    if (hard == nullptr || !hard->is_object()) continue;
    for (const auto& [key, value] : hard->items()) out.push_back(key);
  }
  return out;
}

std::string account_refusal_in(const NamespaceRules& rules, const std::string& pod_account) {
  if (rules.account.empty() || pod_account.empty() || rules.account == pod_account) return "";
  return fmt::format(
      "label {0}: account '{1}' pays for the pods of namespace {2}; leave out the label, or write {0}: {1}",
      kubernetes::account_label, rules.account, rules.name);
}

std::string refusal_in(const NamespaceRules& rules, const kubernetes::PodRequest& request, bool shares) {
  const auto shared = std::ranges::find_if(request.containers,
                                           [](const auto& entry) { return !entry.second.amounts.exclusive; });
  if (shared != request.containers.end() && !rules.is_sharing.value_or(shares))
    return fmt::format(
        "container {}: sharing is disabled in namespace {}; request whole devices with {}, or label the "
        "namespace {}=enabled",
        shared->first, rules.name, dialects::keys::devices, sharing_label);
  if (has_quota_on(rules, dialects::keys::devices))
    return fmt::format(
        "namespace {} has a quota on {}, which counts nothing; set requests.{}, which counts 100 "
        "for a whole device",
        rules.name, dialects::keys::devices, dialects::keys::compute);
  for (const dialects::DialectRow& row : dialects::dialect_rows()) {
    if (row.dialect == dialects::Dialect::carve || text(row.dialect) != request.dialect) continue;
    for (const std::string& key : rules.quota_keys) {
      const std::string_view counted = counted_by(key);
      if (std::ranges::find(row.limits, counted) != row.limits.end())
        return fmt::format("namespace {} has a quota on {}, which counts nothing here; set requests.{}",
                           rules.name, key, our_key(counted));
    }
  }
  return uncounted_amount(rules, request);
}

}  // namespace carve::kubernetes::coordinator
