// Answers resize requests. A pod with the annotation carve.dev/resize gets new amounts in carve.dev/slices,
// or an event with the reason; either way the resize request is removed. The pod's agent then changes the
// slice and writes the result into its node's annotation carve.dev/ledger. After that, the change ends: the
// cache releases the larger amount, or the pod gets its old amounts again and an event with the node's
// reason.
//
// Only the replica next to the active scheduler writes. Each write has the pod's resourceVersion that was
// read, so a newer resize request is never removed unseen. The totals of the scheduler and of quotas do not
// change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/events/waiting_events.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator {

class ResizeWriter {
 public:
  // `fence` returns why no write may begin now; empty if one may.
  ResizeWriter(kubernetes::ApiClient& client, Cache& cache, EventWriter& events,
               std::function<std::string()> fence)
      : client_(client), cache_(cache), events_(events), fence_(std::move(fence)) {}

  // Answers the resize request of a pod from the watch, if it has one and none is being answered.
  void consider(const kubernetes::ObjectMeta& pod);
  // Answers the resize requests of the last list, and those whose answer could not be written.
  void consider_all();
  // Replaces the known pods by a list. Their resize requests wait for consider_all().
  void listed(const kubernetes::ObjectsByUid&);
  void forget(const std::string& uid);  // Called when the pod is gone.
  // Ends the changes whose results are in the annotation of a node from the watch or a list.
  void node_seen(const kubernetes::ObjectMeta& node);

 private:
  enum class Step : uint8_t { reject, begin, end };
  struct Answer {
    Step step = Step::reject;
    kubernetes::ObjectMeta pod;
    kubernetes::PodSlices before, after;
    std::unique_ptr<kubernetes::ApiCall> call;
  };

  bool end_change(const kubernetes::ObjectMeta& pod, const kubernetes::PodSlices&);
  void write_slices(const std::string& uid);

  void refuse(const kubernetes::ObjectMeta& pod, const std::string& message);
  void patch(const std::string& uid, const std::string& annotations);
  void answered(const std::string& uid, const kubernetes::ApiAnswer&);
  void read_pod(const std::string& uid);
  void pod_answered(const std::string& uid, const kubernetes::ApiAnswer&);
  void changed(const std::string& uid, const kubernetes::ObjectMeta& pod);
  void give_up(const std::string& uid, const std::string& problem);
  void give_up_gone(const std::string& uid);

  kubernetes::ApiClient& client_;
  Cache& cache_;
  EventWriter& events_;
  const std::function<std::string()> fence_;
  // The newest known objects of pods with a resize request or a change that has not ended.
  kubernetes::ObjectsByUid resizing_;
  std::map<std::string, std::vector<kubernetes::ChangeResult>> results_;  // By node.
  std::map<std::string, Answer> answers_;                                 // On their way, by the pod's uid.
  std::map<std::string, std::string> done_;  // By the pod's uid: the version whose request was answered last.
};

}  // namespace carve::kubernetes::coordinator
