// The coordinator's cache: the slices that each pod of the cluster holds on each device.
//
// It is built only from the API server's objects and from decisions that no object confirms yet: a
// reservation stays until the pod is seen with its slices, the pod is gone, or the caller knows that the
// binding was not written.
//
// Cache only holds the state. Decisions are functions over it (decisions.h, preemption.h, slice_changes.h,
// explanation.h, consolidation_plan.h), and so are the views (cache_views.h, overcommit.h, device_drift.h).
// They use no clock, socket or random number, so equal caches give equal results. A cache must be used by one
// thread only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kubernetes/coordinator/cache/cached_node.h"
#include "kubernetes/coordinator/cache/cached_pod.h"
#include "place/engine.h"

namespace carve::kubernetes::coordinator {

class Cache {
 public:
  // Not noexcept, so that the standard library stores the hashes next to the keys. A look-up then does not
  // recompute the hashes of the keys that it passes.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <class Value>
  using ByText = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  explicit Cache(Strategy);

  // Adds or updates a node as stored by the API server. A removed node stays in the cache until its last pod
  // is gone, but serves no new pods.
  void set_node(const kubernetes::ObjectMeta&);
  void remove_node(const std::string& name);
  void replace_nodes(const kubernetes::ObjectsByUid&);
  void set_pod(const kubernetes::ObjectMeta&);
  void remove_pod(const std::string& uid);
  // Replaces the pods with those of a list. Reservations are kept, because the list may be older.
  void replace_pods(kubernetes::ObjectsByUid);

  // Adds a pod from a request of the scheduler, which may be ahead of the watch. Fails with a message if the
  // webhook has not written its request.
  Result<void, std::string> know_pod(const kubernetes::ObjectMeta&);

  // Records that the pod has preempted others and waits for the node. For pods of lower priority the pod
  // counts as placed there until it is bound or the nomination is forgotten.
  void nominate(const kubernetes::ObjectMeta& pod, const std::string& node);
  void forget_nomination(const std::string& uid);

  // Gives a known pod these slices instead of its previous ones.
  void place(const std::string& uid, kubernetes::PodSlices);
  // Calls place() and marks the slices as reserved until an object confirms them. The pod's nomination ends.
  void reserve(const std::string& uid, kubernetes::PodSlices);
  void remove_slices(const std::string& uid);
  // Ends a reservation whose binding was not written and will not be. Has no effect on other pods.
  void release(const std::string& uid);

  // Counts the larger of the current and the new amounts of a placed pod, until the pod is seen with the new
  // amounts or the change is ended.
  void begin_change(const std::string& uid, kubernetes::PodSlices to);
  // Ends a change that was not written and will not be.
  void end_change(const std::string& uid);

  const ByText<CachedNode>& nodes() const { return nodes_; }
  const ByText<CachedPod>& pods() const { return pods_; }  // By uid.
  // Return null if the node or the pod is not cached.
  const CachedNode* find_node(std::string_view name) const { return find(nodes_, name); }
  const CachedPod* find_pod(std::string_view uid) const { return find(pods_, uid); }

  // The engine that places requests. A decision updates its index; only the cache changes its nodes and
  // placements.
  place::Engine& engine() { return *engine_; }

  const std::set<std::string>& overcommitted_nodes() const { return overcommitted_nodes_; }
  const std::map<std::string, int64_t>& devices_of_model() const { return devices_of_model_; }
  size_t rebuilds() const { return rebuilds_; }  // Number of times that the engine was rebuilt.

 private:
  template <class Value>
  static const Value* find(const ByText<Value>& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }

  CachedPod& cached_pod(const ClusterPod&);
  void erase_pod(const std::string& uid);
  void add_slices(CachedPod&, kubernetes::PodSlices);
  void add_change(CachedPod&);
  void erase_slices(CachedPod&);
  void count(CachedPod&, const CachedNode&);
  void uncount(CachedPod&);

  void count_models(const CachedNode&, int change);
  void set_state(CachedNode&, fleet::GpuNode);
  void erase_state(CachedNode&);
  void join_fleet(CachedNode&);
  void leave_fleet(CachedNode&);
  void recount(CachedNode&);
  void note_overcommitted(const CachedNode&, const std::vector<fleet::DeviceUse>&);
  void rebuild_if_sparse();
  void forget_if_empty(const std::string& node);

  const Strategy strategy_;
  std::unique_ptr<place::Engine> engine_;
  ByText<CachedNode> nodes_;
  ByText<CachedPod> pods_;  // By uid.
  AskCache asks_;
  std::set<std::string> overcommitted_nodes_;
  std::map<std::string, int64_t> devices_of_model_;
  size_t unused_numbers_ = 0;  // Fleet numbers of removed nodes.
  size_t rebuilds_ = 0;
};

// Returns how much of each device of the node the pods' slices use. Empty if the node has no readable state.
std::vector<fleet::DeviceUse> device_uses(const Cache&, const CachedNode&);

}  // namespace carve::kubernetes::coordinator
