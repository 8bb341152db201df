// Where a request goes on this node: the ledger, the devices and the settings as input of placement, and the
// decision of place/. Pure.
#pragma once

#include <vector>

#include "ledger/ledger.h"
#include "node/agent/agent.h"
#include "node/compute/policies.h"
#include "node/settings/settings.h"
#include "place/place.h"

namespace carve::node {

// The input of the decision. The objects must outlive it.
struct PlacementInput {
  const Settings& settings;
  const std::vector<NodeDevice>& devices;
  const ledger::Ledger& ledger;
  const Policies& policies;

  std::vector<place::DeviceSnapshot> snapshot() const;  // In the order of `devices`.
  // Returns the live slices with their positions. Names of other users' slices are hidden from the viewer.
  std::vector<place::PlacedSlice> placed_slices(const Viewer&) const;
  const place::Topology* links() const { return settings.topology ? &*settings.topology : nullptr; }
};

// A request without a policy takes its device's policy. All parts of one slice follow one policy.
place::Answer explain(const PlacementInput&, const Request&, const Viewer&);

ConsolidationView plan_consolidation(const PlacementInput&, unsigned devices, const Viewer&);

// Returns the slice to grant: the request with its placement.
Slice granted_slice(const PlacementInput&, const Request&, const place::Placement&);

// Returns whether the repeated request would be granted this slice: the same amounts on the same devices (for
// a request that was placed elsewhere), isolation, policy and class.
bool is_granted(const PlacementInput&, const Request&, const Slice&);

}  // namespace carve::node
