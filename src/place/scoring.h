// The one interface of all placement policies. A policy knows no rule and no index: it gives a node that
// could serve a score from 1 to 255, and says which of the fitting devices to take. The engine takes the
// highest score, the first node among equals. Scores are bytes so that 1,213 nodes are twenty cache lines.
#pragma once

#include <memory>

#include "place/fleet.h"
#include "place/guards.h"
#include "place/workload.h"

namespace carve::place {

// A node's score for a request, and the devices that it would take.
struct Score {
  uint8_t value = 0;  // 0: the node cannot serve.
  DeviceSet devices = 0;
};

class Scoring {
 public:
  virtual ~Scoring() = default;

  // `fitting`: the node's devices on which the request could stand, at least as many as it asks for.
  virtual Score score(const Fleet&, uint32_t node, const RequestShape&, DeviceSet fitting) const = 0;

  // What to expect of the requests to come. Scores given before are void.
  virtual void set_workload_model(const Fleet&, const WorkloadModel&) {}

  // Whether the policy looks at the workload at all, and whether it learns it from the arrivals.
  virtual bool uses_workload_model() const { return false; }
  virtual bool learns_workload_model() const { return false; }

  // Whether replicas of one application go to different nodes and devices before anything else counts.
  virtual bool spreads_replicas() const { return false; }

  // A node is not what it was; told once for each change, before the next decision.
  virtual void changed(const Fleet&, uint32_t) {}

  // What the policy wants kept, where it wants something kept.
  virtual Guards* guards() { return nullptr; }
};

std::unique_ptr<Scoring> first_fit();     // The first node that can serve, its lowest devices.
std::unique_ptr<Scoring> best_fit();      // The node that has least left of CPU and compute together.
std::unique_ptr<Scoring> binpack();       // The fullest device of the fullest node.
std::unique_ptr<Scoring> spread();        // The emptiest device of the emptiest node.
std::unique_ptr<Scoring> fgd();           // Fragmentation gradient descent, exactly the paper's buckets.
std::unique_ptr<Scoring> fgd_scarcity();  // FGD with scarcity weights and guards.
std::unique_ptr<Scoring> lookahead();     // What would be left after a fill with what is likely to come.
std::unique_ptr<Scoring> scoring(Strategy);

// The weights of types that few devices can serve, raised by how few.
WorkloadModel scarce(const Fleet&, WorkloadModel);

}  // namespace carve::place
