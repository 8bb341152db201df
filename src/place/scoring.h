// The interface of all placement strategies. A strategy uses no rule and no index. It gives a node that could
// serve a score from 1 to 255, and chooses among the fitting devices. The engine takes the highest score, and
// the first node among equals. Scores are bytes so that those of 1,213 nodes take twenty cache lines.
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

  // Returns the score. `fitting`: the node's devices on which the request fits, at least as many as it needs.
  virtual Score score(const Fleet&, uint32_t node, const RequestShape&, DeviceSet fitting) const = 0;

  // Sets the expected requests. Scores given before are void.
  virtual void set_workload_model(const Fleet&, const WorkloadModel&) {}

  // Whether the strategy uses the workload model, and whether it derives the model from the arrivals.
  virtual bool uses_workload_model() const { return false; }
  virtual bool learns_workload_model() const { return false; }

  // Whether replicas of one application go to different nodes and devices before the score counts.
  virtual bool spreads_replicas() const { return false; }

  // Says that a node has changed; called once for each change, before the next decision.
  virtual void changed(const Fleet&, uint32_t) {}

  // Returns the strategy's guards, or null.
  virtual Guards* guards() { return nullptr; }
};

std::unique_ptr<Scoring> first_fit();     // The first node that can serve, its lowest devices.
std::unique_ptr<Scoring> best_fit();      // The node with least CPU and compute left together.
std::unique_ptr<Scoring> binpack();       // The fullest device of the fullest node.
std::unique_ptr<Scoring> spread();        // The emptiest device of the emptiest node.
std::unique_ptr<Scoring> fgd();           // Fragmentation gradient descent, exactly the paper's buckets.
std::unique_ptr<Scoring> fgd_scarcity();  // FGD with scarcity weights and guards.
std::unique_ptr<Scoring> lookahead();     // Least capacity left unused after simulated arrivals.
std::unique_ptr<Scoring> scoring(Strategy);

// Returns the workload with the weights of types raised that few devices can serve.
WorkloadModel scarce(const Fleet&, WorkloadModel);

}  // namespace carve::place
