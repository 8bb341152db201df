// Orders the nodes of a graph, regardless of what the nodes do. Computes an order in which every node comes
// after the nodes that it waits for, and lanes: the channels over which a launch spreads the nodes. A lane
// runs its nodes one after another, so a chain takes one lane, and parallel branches take several.
//
// Both take time proportional to (nodes + edges) times the number of lanes. The functions are pure.
#pragma once

#include <vector>

namespace carve::sim {

using Waits = std::vector<std::vector<unsigned>>;  // For each node, the nodes that it waits for.

// Orders the nodes. If several could be next, the lowest number comes first. Returns false if there is a
// cycle.
bool order_of(const Waits&, std::vector<unsigned>* order);

// Returns the lane of each node, below `most`. The nodes must be in order. A node goes into the lane of a
// node that it waits for, if that node is the last in its lane. Otherwise it begins a new lane or, if there
// are `most` already, goes into the shortest one.
std::vector<unsigned> lanes_of(const Waits&, unsigned most);

// Returns the nodes for which no other node waits.
std::vector<unsigned> ends_of(const Waits&);

// Returns whether each node of `wanted` is in `from` or comes before a node of `from`.
bool all_before(const Waits&, const std::vector<unsigned>& wanted, const std::vector<unsigned>& from);

}  // namespace carve::sim
