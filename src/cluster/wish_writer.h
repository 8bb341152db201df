// Answers wishes: a pod with the annotation carve.dev/wish gets new amounts in carve.dev/slices, or an event
// with the reason; either way the wish is removed. The pod's agent then follows the annotation.
//
// Only the replica beside the active scheduler writes. Each write names the version of the pod that was read,
// so a newer wish is never removed unseen. What the scheduler and quotas count does not change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cluster/books/books.h"
#include "cluster/events/waiting_events.h"
#include "kube/api_client.h"

namespace carve::cluster {

class WishWriter {
 public:
  // `fence`: returns why no write may begin now; empty: it may.
  WishWriter(kube::ApiClient& client, Books& books, EventWriter& events, std::function<std::string()> fence)
      : client_(client), books_(books), events_(events), fence_(std::move(fence)) {}

  // A pod as the watch shows it. Answers its wish, if it has one and none is being answered.
  void consider(const kube::ObjectMeta& pod);
  // Answers the wishes of a list, and those whose answer was not written.
  void consider_all();
  // All pods that there are. Their wishes wait for consider_all().
  void listed(const kube::ObjectsByUid&);
  void forget(const std::string& uid);  // The pod is gone.

 private:
  struct Answer {
    kube::ObjectMeta pod;
    kube::PodSlices before, after;
    bool is_changed = false;  // False: the wish is refused.
    std::unique_ptr<kube::ApiCall> call;
  };

  void refuse(const kube::ObjectMeta& pod, const std::string& sentence);
  void patch(const std::string& uid, const std::string& annotations);
  void answered(const std::string& uid, const kube::ApiAnswer&);
  void read_pod(const std::string& uid);
  void pod_answered(const std::string& uid, const kube::ApiAnswer&);
  void changed(const std::string& uid, const kube::ObjectMeta& pod);
  void give_up(const std::string& uid, const std::string& problem);
  void give_up_gone(const std::string& uid);

  kube::ApiClient& client_;
  Books& books_;
  EventWriter& events_;
  const std::function<std::string()> fence_;
  kube::ObjectsByUid wishing_;               // Pods with a wish, as they were seen last.
  std::map<std::string, Answer> answers_;    // By the pod's uid; those on their way.
  std::map<std::string, std::string> done_;  // The same: the version whose wish was answered last.
};

}  // namespace carve::cluster
