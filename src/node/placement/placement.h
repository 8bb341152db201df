// Decides where a request is placed on this node: converts the ledger, the devices and the settings to the
// input of place/. All functions are pure.
#pragma once

#include <span>
#include <vector>

#include "ledger/ledger.h"
#include "node/agent/agent.h"
#include "node/compute/policies.h"
#include "node/limits/limit_rule.h"
#include "node/settings/settings.h"
#include "place/place.h"

namespace carve::node {

// The input of the decision. It refers to objects that must outlive it.
struct PlacementInput {
  const Settings& settings;
  const std::vector<NodeDevice>& devices;
  const ledger::Ledger& ledger;
  const Policies& policies;
  std::span<const api::Limit> limits = {};  // Of users and accounts.

  std::vector<place::DeviceSnapshot> snapshot() const;  // In the order of `devices`.
  // Returns the live slices with their positions. Names of other users' slices are hidden from the viewer.
  std::vector<place::PlacedSlice> placed_slices(const Viewer&) const;
  const place::Topology* links() const { return settings.topology ? &*settings.topology : nullptr; }
};

// Returns no placement if the slice would exceed the limit of its owner or its account.
// A request without a policy follows its device's policy. All parts of a slice follow the same policy.
place::Answer explain(const PlacementInput&, const Request&, const Viewer&);

ConsolidationView plan_consolidation(const PlacementInput&, unsigned devices, const Viewer&);

// Returns the slice to grant: the request with its placement.
Slice granted_slice(const PlacementInput&, const Request&, const place::Placement&);

// Returns whether repeating the request would grant this slice: the same amounts, isolation, policy and class
// and, for a request that was placed elsewhere, the same devices.
bool is_granted(const PlacementInput&, const Request&, const Slice&);

}  // namespace carve::node
