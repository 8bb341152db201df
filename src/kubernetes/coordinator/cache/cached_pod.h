// A pod in the cache: what it requests on each kind of node, and the slices that it has.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/coordinator/snapshot/cluster_pod.h"
#include "kubernetes/coordinator/snapshot/request_on.h"
#include "place/engine.h"

namespace carve::kubernetes::coordinator {

// A container's request on nodes of one kind.
struct ContainerAsk {
  std::string container;
  Request request;
  place::RequestShape shape;
  std::vector<Uuid> devices;  // Devices that may serve the request; empty means any.
  std::optional<Strategy> strategy;
};

// The data that pods with equal requests share.
struct SharedAsk {
  kubernetes::PodRequest request;
  // By kind number: the containers in placement order, the largest first, or the reason why nodes of that
  // kind cannot serve the request.
  std::map<unsigned, Result<std::vector<ContainerAsk>, fleet::Refusal>> by_kind;

  // Returns what each container requests on nodes of the kind, or why they cannot serve the request. Computed
  // once per kind.
  const Result<std::vector<ContainerAsk>, fleet::Refusal>& on(const fleet::NodeKind&, const place::Fleet&);
};

class AskCache {
 public:
  // Returns the data that equal requests share, whatever dialect they were written in.
  std::shared_ptr<SharedAsk> shared(const kubernetes::PodRequest&);
  // Clears by_kind of all requests, because the fleet has been renumbered.
  void forget_kinds();

 private:
  std::map<std::string, std::weak_ptr<SharedAsk>> known_;
};

// Returns what each container requests on nodes of the kind, the largest first, or why one of them cannot run
// there.
Result<std::vector<ContainerAsk>, fleet::Refusal> asks_on(const kubernetes::PodRequest&,
                                                          const fleet::NodeKind&, const place::Fleet&);

struct CachedPod {
  std::string uid;
  std::string full_name;             // NAMESPACE/NAME
  std::shared_ptr<SharedAsk> asked;  // Null if it has no readable request.
  std::string application;
  std::string problem;
  std::optional<kubernetes::PodSlices> slices;
  // New amounts that are being written. Until the outcome is known, `slices` has the larger of the old and
  // the new amounts.
  struct Change {
    kubernetes::PodSlices from, to;
  };
  std::optional<Change> change;
  std::optional<int32_t> priority;  // No value if unknown; then no pod preempts this one.
  uint64_t created = 0;             // Creation time, as in kubernetes::ObjectMeta.
  bool is_deleting = false;
  std::string nominated;     // Node for which the pod waits after a preemption, or empty.
  uint64_t version = 0;      // resourceVersion of the newest object of the pod.
  bool is_reserved = false;  // No object confirms the slices yet.
  bool is_known = false;     // Listed or sent by the API server, not only by the scheduler.

  struct Counted {
    place::RequestClass request_class;
    place::Assignment assignment;
    place::Application application;
  };
  std::vector<Counted> counted;  // Placements in the engine that count this pod's slices.
};

}  // namespace carve::kubernetes::coordinator
