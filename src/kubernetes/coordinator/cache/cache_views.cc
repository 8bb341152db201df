#include "kubernetes/coordinator/cache/cache_views.h"

#include <algorithm>
#include <set>

namespace carve::kubernetes::coordinator {

std::vector<std::string_view> node_names(const Cache& cache) {
  std::vector<std::string_view> out;
  for (const auto& [name, node] : cache.nodes()) out.push_back(name);
  return out;
}

std::map<std::string, std::string> unreadable_objects(const Cache& cache) {
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : cache.nodes())
    if (!node.problem.empty()) out["node " + name] = node.problem;
  for (const auto& [uid, pod] : cache.pods())
    if (!pod.problem.empty()) out["pod " + pod.full_name] = pod.problem;
  return out;
}

std::vector<fleet::DeviceUse> device_uses(const Cache& cache, const std::string& name) {
  const CachedNode* const node = cache.find_node(name);
  return node == nullptr ? std::vector<fleet::DeviceUse>() : device_uses(cache, *node);
}

std::vector<std::string> device_models(const Cache& cache) {
  std::vector<std::string> out;
  for (const auto& [model, devices] : cache.devices_of_model()) out.push_back(model);
  return out;
}

std::map<uint64_t, std::vector<std::string>> pods_in_units(const Cache& cache) {
  std::map<uint64_t, std::set<std::string>> sorted;
  for (const auto& [uid, pod] : cache.pods()) {
    if (pod.asked == nullptr) continue;
    for (const auto& [container, amounts] : pod.asked->request.containers)
      if (amounts.unit) sorted[*amounts.unit].insert(pod.full_name);
  }
  std::map<uint64_t, std::vector<std::string>> out;
  for (const auto& [unit, names] : sorted) out[unit].assign(names.begin(), names.end());
  return out;
}

std::vector<std::string> unconfirmed_pods(const Cache& cache) {
  std::vector<std::string> out;
  for (const auto& [uid, pod] : cache.pods())
    if (pod.is_reserved) out.push_back(uid);
  std::ranges::sort(out);
  return out;
}

bool is_unconfirmed(const Cache& cache, const std::string& uid) {
  const CachedPod* const pod = cache.find_pod(uid);
  return pod != nullptr && pod->is_reserved;
}

std::vector<std::string> waiting_pods(const Cache& cache) {
  std::vector<std::string> out;
  for (const auto& [uid, pod] : cache.pods())
    if (pod.is_known && !pod.slices && !pod.is_deleting && pod.asked != nullptr && pod.problem.empty())
      out.push_back(uid);
  std::ranges::sort(out);
  return out;
}

std::string full_name_of(const Cache& cache, const std::string& uid) {
  const CachedPod* const pod = cache.find_pod(uid);
  return pod == nullptr ? "" : pod->full_name;
}

std::string uid_of(const Cache& cache, std::string_view full_name) {
  const auto found =
      std::ranges::find_if(cache.pods(), [&](const auto& pod) { return pod.second.full_name == full_name; });
  return found == cache.pods().end() ? "" : found->first;
}

}  // namespace carve::kubernetes::coordinator
