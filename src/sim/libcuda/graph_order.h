// The arithmetic of graphs, without what their nodes do: an order in which every node comes after those it
// waits for, and lanes, the channels over which a launch spreads the nodes. A lane runs its nodes one after
// another, so a chain takes one lane, and branches side by side take several.
//
// Both take time proportional to nodes and edges, times the number of lanes. Pure.
#pragma once

#include <vector>

namespace carve::sim {

using Waits = std::vector<std::vector<unsigned>>;  // For each node the nodes that it waits for.

// Nodes in order; of those that could be next, the one with the lowest number. False if there is a cycle.
bool order_of(const Waits&, std::vector<unsigned>* order);

// For nodes that are in order already: the lane of each, below `most`. A node follows one of those it waits
// for if that is the last in its lane; else it begins a lane, or queues in the shortest.
std::vector<unsigned> lanes_of(const Waits&, unsigned most);

// The nodes that no other waits for.
std::vector<unsigned> ends_of(const Waits&);

// Whether each node of `wanted` is one of `from` or comes before one of them.
bool all_before(const Waits&, const std::vector<unsigned>& wanted, const std::vector<unsigned>& from);

}  // namespace carve::sim
