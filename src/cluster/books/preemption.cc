// Preemption: which pods make room for another, and the room that is kept for it until it is bound.
#include <algorithm>
#include <tuple>

#include "cluster/books/supposition.h"

namespace carve::cluster {
namespace {

constexpr std::string_view kept_for_another = "kept for a preempting pod";

int32_t priority_of(const PodBook& pod) { return pod.priority.value_or(0); }

// A pod that may be removed.
struct Candidate {
  std::string uid;
  int32_t priority;
  uint64_t memory;
  uint64_t created;
};

Candidate candidate_of(const PodBook& pod) {
  Candidate out{.uid = pod.uid, .priority = *pod.priority, .memory = 0, .created = pod.created};
  for (const auto& [container, slice] : pod.slices->containers)
    for (const kube::PlacedPart& part : slice.parts) out.memory += part.memory.count;
  return out;
}

// Returns whether the pod on a node may be removed for the other.
bool may_be_removed(const PodBook& pod, const PodBook& other) {
  return &pod != &other && !pod.is_deleting && !pod.is_reserved && pod.priority &&
         *pod.priority < priority_of(other);
}

}  // namespace

void Books::nominate(const kube::ObjectMeta& object, const std::string& node) {
  if (!know_pod(object)) return;
  forget_nomination(object.uid);
  PodBook& pod = pods_.at(object.uid);
  if (pod.slices) return;
  pod.nominated = node;
  NodeBook& book = nodes_[node];
  book.name = node;
  book.nominated.insert(pod.uid);
}

void Books::forget_nomination(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.nominated.empty()) return;
  const std::string name = std::exchange(pod->second.nominated, {});
  nodes_.at(name).nominated.erase(uid);
  forget_if_empty(name);
}

// Pods that are being deleted make room for the nominated ones, and still count for the others.
void Books::place_nominated(Supposition& supposition, const PodBook& asking, const NodeBook& node) {
  if (!node.state || !node.number) return;
  for (const std::string& uid : node.nominated) {
    PodBook& pod = pods_.at(uid);
    if (&pod == &asking || pod.slices || priority_of(pod) <= priority_of(asking)) continue;
    std::optional<kube::PodSlices> slices;
    {
      Supposition without(*this);
      const std::set<std::string> here = node.pods;
      for (const std::string& each : here)
        if (PodBook& other = pods_.at(each); other.is_deleting) without.remove(other);
      if (const auto chosen = choices(pod, node)) slices = slices_of(*chosen, node);
    }
    if (slices) supposition.place(pod, std::move(*slices));
  }
}

// Returns why the pod cannot be on the node, beside those that are nominated.
std::string_view Books::refusal_now(PodBook& pod, const NodeBook& node) {
  const std::string_view why = refusal(pod, node);
  if (!why.empty() || node.nominated.empty()) return why;
  Supposition supposition(*this);
  place_nominated(supposition, pod, node);
  return refusal(pod, node).empty() ? std::string_view() : kept_for_another;
}

bool Books::fits_without(const std::string& uid, const std::string& node, std::span<const std::string> pods) {
  const auto pod = pods_.find(uid);
  const auto there = nodes_.find(node);
  if (pod == pods_.end() || pod->second.asked == nullptr || there == nodes_.end()) return false;
  if (!there->second.state) return false;
  Supposition supposition(*this);
  for (const std::string& each : pods) {
    const auto found = pods_.find(each);
    if (each == uid || found == pods_.end() || !found->second.slices || found->second.slices->node != node)
      continue;
    supposition.remove(found->second);
  }
  return refusal_now(pod->second, there->second).empty();
}

std::vector<size_t> Books::preemptible(const std::string& uid, std::span<const std::string_view> nodes) {
  std::vector<size_t> out;
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return out;
  size_t tries = 0;
  for (size_t i = 0; i < nodes.size() && out.size() < max_preemptible_nodes; ++i) {
    const auto node = nodes_.find(nodes[i]);
    if (node == nodes_.end()) continue;
    std::vector<std::string> gone;
    bool is_any_removed = false;
    for (const std::string& each : node->second.pods) {
      const PodBook& other = pods_.at(each);
      const bool is_removed = may_be_removed(other, pod->second);
      is_any_removed |= is_removed;
      if (is_removed || other.is_deleting) gone.push_back(each);
    }
    if (!is_any_removed) continue;
    if (++tries > max_preemption_tries) break;
    if (fits_without(uid, node->first, gone)) out.push_back(i);
  }
  return out;
}

std::optional<std::vector<std::string>> Books::victims(const std::string& uid, const std::string& node_name,
                                                       std::span<const std::string> given) {
  const auto pod = pods_.find(uid);
  const auto node = nodes_.find(node_name);
  if (pod == pods_.end() || node == nodes_.end()) return std::nullopt;
  std::vector<std::string> out(given.begin(), given.end());
  std::vector<std::string> gone = out;
  std::vector<Candidate> candidates;
  for (const std::string& each : node->second.pods) {
    const PodBook& other = pods_.at(each);
    if (std::ranges::find(given, each) != given.end()) continue;
    if (other.is_deleting) gone.push_back(each);
    if (may_be_removed(other, pod->second)) candidates.push_back(candidate_of(other));
  }
  if (fits_without(uid, node_name, gone)) return out;
  // Remove whole priorities, the lowest first, until the pod fits.
  std::ranges::sort(candidates, {}, [](const Candidate& c) { return std::tie(c.priority, c.uid); });
  std::vector<Candidate> removed;
  for (bool fits = false; !fits;) {
    if (removed.size() == candidates.size()) return std::nullopt;
    const int32_t level = candidates[removed.size()].priority;
    for (size_t i = removed.size(); i < candidates.size() && candidates[i].priority == level; ++i) {
      removed.push_back(candidates[i]);
      gone.push_back(candidates[i].uid);
    }
    fits = fits_without(uid, node_name, gone);
  }
  // Put back what need not go: of the highest priority, the smallest, the oldest first.
  std::ranges::sort(removed, [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.priority, a.memory, a.created, a.uid) <
           std::tuple(a.priority, b.memory, b.created, b.uid);
  });
  for (const Candidate& candidate : removed) {
    std::erase(gone, candidate.uid);
    if (fits_without(uid, node_name, gone)) continue;
    gone.push_back(candidate.uid);
    out.push_back(candidate.uid);
  }
  return out;
}

}  // namespace carve::cluster
