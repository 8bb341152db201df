// Keeps the books as the API server has nodes and pods: two watches of metadata alone, and one of the few
// pods that wait for a node after a preemption.
//
// A coordinator whose scheduler begins to hold the Lease calls list_pods_again(): what another coordinator
// bound before is in a list that begins when all its writes are over. Until that list is complete, the books
// decide on nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/books/books.h"
#include "kube/watched_objects.h"

namespace carve::cluster {

// For so long a pod keeps the room that it has made.
inline constexpr kube::Nanoseconds nomination_ns = 60 * kube::second_ns;

class BooksFeed {
 public:
  struct Hooks {
    std::function<void(const kube::ObjectsByUid&)> listed;  // These are all pods.
    std::function<void(const kube::ObjectMeta&)> seen;      // A pod was created or has changed.
    std::function<void(const std::string& uid)> gone;       // A pod left the cluster.
  };
  BooksFeed(kube::ApiClient&, Books&, Hooks, uint64_t seed);

  // Lists the pods anew, with a list that begins at `not_before` at the earliest.
  void list_pods_again(kube::Nanoseconds not_before);

  // Returns why the books are not complete; empty: they are.
  std::string not_ready() const;
  const kube::WatchedObjects& nodes() const { return *nodes_; }
  const kube::ObjectWatch& pods() const { return *pods_; }
  uint64_t pod_lists() const { return earlier_lists_ + pods_->lists(); }

 private:
  void watch_pods();
  void nominated(const kube::ObjectMeta& pod);

  kube::ApiClient& client_;
  Books& books_;
  const Hooks hooks_;
  uint64_t seed_;
  uint64_t earlier_lists_ = 0;  // Of watches that were replaced.
  std::optional<kube::WatchedObjects> nodes_;
  std::optional<kube::ObjectWatch> pods_;  // The books have of them what is needed.
  // Pods that wait for a node after a preemption, and when each of them is forgotten.
  std::optional<kube::WatchedObjects> nominated_;
  struct Nomination {
    std::string node;
    std::unique_ptr<kube::ApiCall> end;  // Null: its time is over.
  };
  std::map<std::string, Nomination> nominations_;  // By uid.
  std::unique_ptr<kube::ApiCall> timer_;           // Until the pods are listed again; null: none is set.
};

}  // namespace carve::cluster
