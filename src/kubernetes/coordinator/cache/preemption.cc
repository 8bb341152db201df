#include "kubernetes/coordinator/cache/preemption.h"

#include <algorithm>
#include <tuple>

#include "kubernetes/coordinator/cache/node_fit.h"

namespace carve::kubernetes::coordinator {
namespace {

// A pod that may be removed.
struct Candidate {
  std::string uid;
  int32_t priority;
  uint64_t memory;
  uint64_t created;
};

Candidate candidate_of(const CachedPod& pod) {
  Candidate out{.uid = pod.uid, .priority = *pod.priority, .memory = 0, .created = pod.created};
  for (const auto& [container, slice] : pod.slices->containers)
    for (const kubernetes::PlacedPart& part : slice.parts) out.memory += part.memory.count;
  return out;
}

// Returns whether `pod`, which is on a node, may be removed for `other`.
bool may_be_removed(const CachedPod& pod, const CachedPod& other) {
  return &pod != &other && !pod.is_deleting && !pod.is_reserved && pod.priority &&
         *pod.priority < other.priority.value_or(0);
}

}  // namespace

bool fits_without(Cache& cache, const std::string& uid, const std::string& node_name,
                  std::span<const std::string> pods) {
  const CachedPod* const pod = cache.find_pod(uid);
  const CachedNode* const node = cache.find_node(node_name);
  if (pod == nullptr || pod->asked == nullptr || node == nullptr || !node->state) return false;
  AssumedPods assumed(cache);
  for (const std::string& each : pods) {
    const CachedPod* const other = cache.find_pod(each);
    if (other == nullptr || other == pod || !other->slices || other->slices->node != node_name) continue;
    assumed.remove(*other);
  }
  return refusal_with_nominated(cache, *pod, *node).empty();
}

std::vector<size_t> preemptible_nodes(Cache& cache, const std::string& uid,
                                      std::span<const std::string_view> nodes) {
  std::vector<size_t> out;
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr) return out;
  size_t tries = 0;
  for (size_t i = 0; i < nodes.size() && out.size() < max_preemptible_nodes; ++i) {
    const CachedNode* const node = cache.find_node(nodes[i]);
    if (node == nullptr) continue;
    std::vector<std::string> gone;
    bool is_any_removed = false;
    for (const std::string& each : node->pods) {
      const CachedPod& other = *cache.find_pod(each);
      const bool is_removed = may_be_removed(other, *pod);
      is_any_removed |= is_removed;
      if (is_removed || other.is_deleting) gone.push_back(each);
    }
    if (!is_any_removed) continue;
    if (++tries > max_preemption_tries) break;
    if (fits_without(cache, uid, node->name, gone)) out.push_back(i);
  }
  return out;
}

std::optional<std::vector<std::string>> complete_victims(Cache& cache, const std::string& uid,
                                                         const std::string& node_name,
                                                         std::span<const std::string> given) {
  const CachedPod* const pod = cache.find_pod(uid);
  const CachedNode* const node = cache.find_node(node_name);
  if (pod == nullptr || node == nullptr) return std::nullopt;
  std::vector<std::string> out(given.begin(), given.end());
  std::vector<std::string> gone = out;
  std::vector<Candidate> candidates;
  for (const std::string& each : node->pods) {
    const CachedPod& other = *cache.find_pod(each);
    if (std::ranges::find(given, each) != given.end()) continue;
    if (other.is_deleting) gone.push_back(each);
    if (may_be_removed(other, *pod)) candidates.push_back(candidate_of(other));
  }
  if (fits_without(cache, uid, node_name, gone)) return out;
  // Remove all pods of one priority at a time, the lowest first, until the pod fits.
  std::ranges::sort(candidates, {}, [](const Candidate& c) { return std::tie(c.priority, c.uid); });
  std::vector<Candidate> removed;
  for (bool fits = false; !fits;) {
    if (removed.size() == candidates.size()) return std::nullopt;
    const int32_t level = candidates[removed.size()].priority;
    for (size_t i = removed.size(); i < candidates.size() && candidates[i].priority == level; ++i) {
      removed.push_back(candidates[i]);
      gone.push_back(candidates[i].uid);
    }
    fits = fits_without(cache, uid, node_name, gone);
  }
  // Put back the pods that need not be removed: the highest priority first, then the smallest, then the
  // oldest.
  std::ranges::sort(removed, [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.priority, a.memory, a.created, a.uid) <
           std::tuple(a.priority, b.memory, b.created, b.uid);
  });
  for (const Candidate& candidate : removed) {
    std::erase(gone, candidate.uid);
    if (fits_without(cache, uid, node_name, gone)) continue;
    gone.push_back(candidate.uid);
    out.push_back(candidate.uid);
  }
  return out;
}

}  // namespace carve::kubernetes::coordinator
