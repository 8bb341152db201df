// Fills the cache from the API server: two watches of the metadata of nodes and pods, and a watch of the few
// pods that wait for a node after a preemption.
//
// When the coordinator's scheduler acquires the Lease, list_pods_again() is called. The list begins after all
// writes of the other coordinator have ended, so it includes all its bindings. The cache makes no decisions
// until that list is complete.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kubernetes/api/watched_objects.h"
#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// How long capacity that a pod has freed by preemption is reserved for it.
inline constexpr kubernetes::Nanoseconds nomination_ns = 60 * kubernetes::second_ns;

class CacheFeed {
 public:
  struct Hooks {
    std::function<void(const kubernetes::ObjectsByUid&)> listed;  // All pods, before the cache gets them.
    std::function<void(const kubernetes::ObjectMeta&)> seen;      // A pod was created or has changed.
    std::function<void(const std::string& uid)> gone;             // A pod left the cluster.
    std::function<void(const kubernetes::ObjectMeta&)> node;  // A node was listed, created or has changed.
  };
  CacheFeed(kubernetes::ApiClient&, Cache&, Hooks, uint64_t seed);

  // Lists the pods again. The list begins at `not_before` or later.
  void list_pods_again(kubernetes::Nanoseconds not_before);

  // Returns why the cache is not complete; empty if it is.
  std::string not_ready() const;
  const kubernetes::WatchedObjects& nodes() const { return *nodes_; }
  const kubernetes::ObjectWatch& pods() const { return *pods_; }
  uint64_t pod_lists() const { return earlier_lists_ + pods_->lists(); }

 private:
  void watch_pods();
  void nominated(const kubernetes::ObjectMeta& pod);

  kubernetes::ApiClient& client_;
  Cache& cache_;
  const Hooks hooks_;
  uint64_t seed_;
  uint64_t earlier_lists_ = 0;  // Lists by watches that were replaced.
  std::optional<kubernetes::WatchedObjects> nodes_;
  std::optional<kubernetes::ObjectWatch> pods_;  // Keeps no objects: the cache has the needed fields.
  // Pods that wait for a node after a preemption, and when each of them is forgotten.
  std::optional<kubernetes::WatchedObjects> nominated_;
  struct Nomination {
    std::string node;
    std::unique_ptr<kubernetes::ApiCall> end;  // Null when its time limit has passed.
  };
  std::map<std::string, Nomination> nominations_;  // By uid.
  std::unique_ptr<kubernetes::ApiCall> timer_;     // Until the next list of pods. Null if none is due.
};

}  // namespace carve::kubernetes::coordinator
