#include "controller/kubernetes/cluster_capacity.h"

#include "controller/kubernetes/json_members.h"
#include "dialects/pod/keys.h"
#include "kubernetes/format/quantity.h"

namespace carve::controller {

using api::Json;
using kubernetes::ObjectMeta;

ClusterCapacity::Part ClusterCapacity::part_of(const ObjectMeta& node) {
  Part out;
  if (const auto label = node.labels.find(pool_label); label != node.labels.end()) out.pool = label->second;
  const Json json = Json::parse(node.document, nullptr, /*allow_exceptions=*/false);
  const Json& cordoned = member(member(json, "spec"), "unschedulable");
  if (text_at(condition_of(json, "Ready"), "status") != "True" ||
      (cordoned.is_boolean() && cordoned.get<bool>()))
    return out;
  const Json& free = member(member(json, "status"), "allocatable");
  const auto amount = [&](const char* key) {
    return kubernetes::parse_quantity(text_at(free, key)).value_or(0);
  };
  out.amounts = {.memory_bytes = amount(dialects::keys::memory),
                 .compute_percent = amount(dialects::keys::compute)};
  return out;
}

DeviceAmounts ClusterCapacity::of(const std::string& pool) const {
  DeviceAmounts out;
  for (const auto& [uid, part] : parts_) {
    if (part.pool != pool) continue;
    out.memory_bytes += part.amounts.memory_bytes;
    out.compute_percent += part.amounts.compute_percent;
  }
  return out;
}

bool ClusterCapacity::replace(const kubernetes::ObjectsByUid& all) {
  std::map<std::string, Part> parts;
  for (const auto& [uid, node] : all) parts.emplace(uid, part_of(node));
  std::swap(parts, parts_);
  return parts != parts_;
}

bool ClusterCapacity::put(const ObjectMeta& node) {
  Part part = part_of(node);
  Part& known = parts_[node.uid];
  if (known == part) return false;
  known = std::move(part);
  return true;
}

bool ClusterCapacity::remove(const ObjectMeta& node) { return parts_.erase(node.uid) != 0; }

}  // namespace carve::controller
