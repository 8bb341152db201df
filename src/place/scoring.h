// The interface of all placement strategies. A strategy uses no rule and no index. It gives a node that could
// serve the request a score from 1 to 255, and chooses among the fitting devices. The engine takes the
// highest score, and the first node among equals. Scores are bytes, so that the scores of 1,213 nodes take
// twenty cache lines.
#pragma once

#include <memory>

#include "place/fleet.h"
#include "place/guards.h"
#include "place/part_devices.h"
#include "place/workload.h"

namespace carve::place {

// A node's score for a request, and the devices that it would take.
struct Score {
  uint8_t value = 0;  // 0 if the node cannot serve the request.
  PartDevices devices;
};

class Scoring {
 public:
  virtual ~Scoring() = default;

  // Returns the score. `fitting` contains the node's devices that can serve the parts of the request.
  virtual Score score(const Fleet&, uint32_t node, const RequestShape&,
                      const FittingDevices& fitting) const = 0;

  // Sets the expected requests. Earlier scores become invalid.
  virtual void set_workload_model(const Fleet&, const WorkloadModel&) {}

  // Return whether the strategy uses the workload model, and whether it derives the model from the arrivals.
  virtual bool uses_workload_model() const { return false; }
  virtual bool learns_workload_model() const { return false; }

  // Returns whether replicas of one application go to different nodes and devices before scores are compared.
  virtual bool spreads_replicas() const { return false; }

  // Notifies the strategy of a changed node; called once for each change, before the next decision.
  virtual void changed(const Fleet&, uint32_t) {}

  // Returns the strategy's guards, or null.
  virtual Guards* guards() { return nullptr; }
};

std::unique_ptr<Scoring> first_fit();     // The first node that can serve, with its lowest-numbered devices.
std::unique_ptr<Scoring> best_fit();      // The node with the least CPU and compute left.
std::unique_ptr<Scoring> binpack();       // The fullest device on the fullest node.
std::unique_ptr<Scoring> spread();        // The emptiest device of the emptiest node.
std::unique_ptr<Scoring> fgd();           // Fragmentation gradient descent with the paper's buckets.
std::unique_ptr<Scoring> fgd_scarcity();  // FGD with scarcity weights and guards.
std::unique_ptr<Scoring> lookahead();     // The least capacity left unused after simulated arrivals.
std::unique_ptr<Scoring> scoring(Strategy);

// Raises the weights of types that few devices can serve.
WorkloadModel scarce(const Fleet&, WorkloadModel);

}  // namespace carve::place
