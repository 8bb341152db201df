// A pod in the books: what it asks for on each kind of node, and what it has.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/snapshot/cluster_pod.h"
#include "cluster/snapshot/request_on.h"
#include "place/engine.h"

namespace carve::cluster {

// A container's request on nodes of one kind.
struct ContainerAsk {
  std::string container;
  Request request;
  place::RequestShape shape;
  std::vector<Uuid> devices;  // That alone may serve it; empty: any.
  std::optional<Strategy> strategy;
};

// What equal requests share. The request's containers, the largest first: they are placed in this order.
struct SharedAsk {
  kube::PodRequest request;
  // By the kind's number; no value: nodes of the kind do not give it.
  std::map<unsigned, std::optional<std::vector<ContainerAsk>>> by_kind;
};

class AskCache {
 public:
  // Returns the shared form; the same for equal requests, whichever words they were made in.
  std::shared_ptr<SharedAsk> shared(const kube::PodRequest&);
  // Forgets what the requests are on each kind of node: the fleet's numbers have changed.
  void forget_kinds();

 private:
  std::map<std::string, std::weak_ptr<SharedAsk>> known_;
};

// Returns what each container asks for on a node of this kind, or no value if one of them cannot be there.
std::optional<std::vector<ContainerAsk>> asks_on(const kube::PodRequest&, const NodeKind&,
                                                 const place::Fleet&);

struct PodBook {
  std::string uid;
  std::string full_name;             // NAMESPACE/NAME
  std::shared_ptr<SharedAsk> asked;  // None: it has no readable request.
  std::string application;
  std::string problem;
  std::optional<kube::PodSlices> slices;
  // New amounts that are being written. Until it is known which are in the object, the larger are booked.
  struct Change {
    kube::PodSlices from, to;
  };
  std::optional<Change> change;
  std::optional<int32_t> priority;  // None: it is not known, and no pod takes its place.
  uint64_t created = 0;             // As kube::ObjectMeta has it.
  bool is_deleting = false;
  std::string nominated;     // The node that it waits for after a preemption; empty: none.
  uint64_t version = 0;      // resourceVersion of the newest object that was seen.
  bool is_reserved = false;  // No object confirms the slices yet.
  bool is_known = false;     // An object of this pod was seen.

  struct Counted {
    place::RequestClass request_class;
    place::Assignment assignment;
    place::Application application;
  };
  std::vector<Counted> counted;  // What the engine was told.
};

}  // namespace carve::cluster
