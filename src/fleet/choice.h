// Which node serves a request, among those that the caller may use: the engine's choice and its scores for
// each kind of node, compared over all kinds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/gpu_node.h"
#include "place/engine.h"

namespace carve::fleet {

struct Candidate {
  std::optional<uint32_t> number;  // In the engine's fleet. No value if the node has no device.
  // The request on nodes of its kind, the same object for all of them. Null if they do not serve it.
  const place::RequestShape* shape = nullptr;
};

struct Ranking {
  std::vector<uint8_t> scores;  // By candidate; 0 if it cannot serve the request.
  std::optional<size_t> best;   // The candidate that the strategy chooses. No value if none can serve.
};

// Replicas of an application are kept apart. Among equal candidates the first is preferred.
Ranking rank(place::Engine&, std::span<const Candidate>, place::Application = place::no_application);

// Returns the strategy that chooses the node's devices: the requested one or the node's. No value for the
// strategy of the fleet.
std::optional<Strategy> strategy_on(std::optional<Strategy> requested, const GpuNode&);

}  // namespace carve::fleet
