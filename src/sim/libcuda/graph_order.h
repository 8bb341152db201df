// The arithmetic of graphs, without the operations of their nodes. It computes an order in which every node
// comes after those for which it waits, and lanes: the channels over which a launch spreads the nodes. A lane
// runs its nodes one after another, so a chain takes one lane, and parallel branches take several.
//
// Both take time proportional to nodes and edges, times the number of lanes. Pure.
#pragma once

#include <vector>

namespace carve::sim {

using Waits = std::vector<std::vector<unsigned>>;  // For each node the nodes that it waits for.

// Orders the nodes. If several could be next, the lowest number comes first. Returns false if there is a
// cycle.
bool order_of(const Waits&, std::vector<unsigned>* order);

// Returns the lane of each node, below `most`. The nodes must be in order. A node follows one of those for
// which it waits if that is the last in its lane; otherwise it begins a lane, or queues in the shortest.
std::vector<unsigned> lanes_of(const Waits&, unsigned most);

// Returns the nodes for which no other node waits.
std::vector<unsigned> ends_of(const Waits&);

// Returns whether each node of `wanted` is one of `from` or comes before one of them.
bool all_before(const Waits&, const std::vector<unsigned>& wanted, const std::vector<unsigned>& from);

}  // namespace carve::sim
