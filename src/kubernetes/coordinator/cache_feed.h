// Fills the cache from the API server: two watches of the metadata of nodes and pods, and a watch of the few
// pods that wait for a node after a preemption.
//
// list_pods_again() is called when the scheduler next to this coordinator acquires the Lease. The list begins
// after all writes of the other coordinator have ended, so it includes all of that coordinator's bindings.
// The cache makes no decisions until that list is complete.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kubernetes/api/watched_objects.h"
#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// How long the capacity that preemption has freed is reserved for the preempting pod.
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

  // Lists the pods again, not before `not_before`.
  void list_pods_again(kubernetes::Nanoseconds not_before);

  // Returns why the cache is not complete. Empty if it is.
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
  uint64_t earlier_lists_ = 0;  // Lists made by earlier watches.
  std::optional<kubernetes::WatchedObjects> nodes_;
  std::optional<kubernetes::ObjectWatch> pods_;  // Keeps no objects; the cache has the fields that it needs.
  // Pods that wait for a node after a preemption, and when each nomination is forgotten.
  std::optional<kubernetes::WatchedObjects> nominated_;
  struct Nomination {
    std::string node;
    std::unique_ptr<kubernetes::ApiCall> end;  // Null once the time limit has passed.
  };
  std::map<std::string, Nomination> nominations_;  // By uid.
  std::unique_ptr<kubernetes::ApiCall> timer_;     // Until the next list of pods; null if none is due.
};

}  // namespace carve::kubernetes::coordinator
