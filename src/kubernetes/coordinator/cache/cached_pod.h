// A pod in the cache: what it requests on each kind of node, and what it has.
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
  std::vector<Uuid> devices;  // The only devices that may serve it. Empty means any device.
  std::optional<Strategy> strategy;
};

// The part that equal requests share.
struct SharedAsk {
  kubernetes::PodRequest request;
  // The containers by kind number, in placement order, the largest first, or why nodes of the kind cannot
  // serve the request.
  std::map<unsigned, Result<std::vector<ContainerAsk>, fleet::Refusal>> by_kind;

  // Returns what each container requests on nodes of the kind, or why they cannot serve the request. It is
  // computed once for each kind.
  const Result<std::vector<ContainerAsk>, fleet::Refusal>& on(const fleet::NodeKind&, const place::Fleet&);
};

class AskCache {
 public:
  // Returns the shared form, which is the same for equal requests of any dialect.
  std::shared_ptr<SharedAsk> shared(const kubernetes::PodRequest&);
  // Clears by_kind of all requests, because the fleet's numbers have changed.
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
  // New amounts that are being written. `slices` has the larger of both until the outcome is known.
  struct Change {
    kubernetes::PodSlices from, to;
  };
  std::optional<Change> change;
  std::optional<int32_t> priority;  // No value if it is not known; then no pod preempts this one.
  uint64_t created = 0;             // As in kubernetes::ObjectMeta.
  bool is_deleting = false;
  std::string nominated;     // The node it waits for after a preemption. Empty if none.
  uint64_t version = 0;      // resourceVersion of the newest object of the pod.
  bool is_reserved = false;  // No object confirms the slices yet.
  bool is_known = false;     // The API server has listed or sent it, not only the scheduler.

  struct Counted {
    place::RequestClass request_class;
    place::Assignment assignment;
    place::Application application;
  };
  std::vector<Counted> counted;  // Placements that the engine counts.
};

}  // namespace carve::kubernetes::coordinator
