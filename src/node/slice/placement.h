// Where a request goes on this node: the ledger, the devices and the settings as placement sees them, and the
// decision of place/. Pure.
#pragma once

#include <vector>

#include "ledger/ledger.h"
#include "node/agent/agent.h"
#include "node/compute/policies.h"
#include "node/slice/settings.h"
#include "place/place.h"

namespace carve::node {

// What the decision depends on. The objects must outlive it.
struct PlacementInput {
  const Settings& settings;
  const std::vector<NodeDevice>& devices;
  const ledger::Ledger& ledger;
  const Policies& policies;

  std::vector<place::DeviceSnapshot> snapshot() const;  // In the order of `devices`.
  // Returns the living slices with their positions. Names of other users' slices are hidden from the viewer.
  std::vector<place::PlacedSlice> placed_slices(const Viewer&) const;
  const place::Topology* links() const { return settings.topology ? &*settings.topology : nullptr; }
};

// A request without a policy takes its device's policy. All parts of one slice follow one policy.
place::Answer explain(const PlacementInput&, const Request&, const Viewer&);

ConsolidationView plan_consolidation(const PlacementInput&, unsigned devices, const Viewer&);

// Returns the slice as it is granted: what was requested, where it was placed.
Slice granted_slice(const PlacementInput&, const Request&, const place::Placement&);

// Returns whether the request, repeated, would be granted this slice: the same amounts on the same devices
// (for a request that was placed elsewhere), isolation, policy and class.
bool is_granted(const PlacementInput&, const Request&, const Slice&);

}  // namespace carve::node
