// Handles resize requests. A pod with the annotation carve.dev/resize gets new amounts in carve.dev/slices,
// or an event with the reason for its rejection; in both cases the resize request is removed. The pod's agent
// then changes the slice and writes the result into its node's annotation carve.dev/ledger. Then the change
// ends: either the cache releases the larger amount, or the pod gets its old amounts again and an event with
// the node's reason.
//
// Only the replica whose scheduler holds the Lease writes. Each write contains the resourceVersion that was
// read, so a newer resize request is never removed unseen. The totals that the scheduler and quotas count do
// not change.
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
  // `fence` returns why no write may start now, or an empty text if one may.
  ResizeWriter(kubernetes::ApiClient& client, Cache& cache, EventWriter& events,
               std::function<std::string()> fence)
      : client_(client), cache_(cache), events_(events), fence_(std::move(fence)) {}

  // Handles the resize request of a pod from the watch, unless the pod has none or it is already being
  // handled.
  void consider(const kubernetes::ObjectMeta& pod);
  // Handles the resize requests of the last list, and those whose outcome could not be written.
  void consider_all();
  // Replaces the known pods by those of a list. Their resize requests wait for consider_all().
  void listed(const kubernetes::ObjectsByUid&);
  void forget(const std::string& uid);  // Called when the pod is gone.
  // Ends the changes whose outcome is in the annotation of this node, which comes from the watch or a list.
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
  // The newest known objects of the pods that have a resize request or an unfinished change.
  kubernetes::ObjectsByUid resizing_;
  std::map<std::string, std::vector<kubernetes::ChangeResult>> results_;  // By node.
  std::map<std::string, Answer> answers_;                                 // In progress, by the pod's uid.
  std::map<std::string, std::string> done_;  // By the pod's uid: the last version handled.
};

}  // namespace carve::kubernetes::coordinator
