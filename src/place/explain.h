// Explains why a request fits nowhere in a fleet. Each node is counted once, under the first rule that it
// breaks, in the style of kube-scheduler; then the message states the closest fit: "0/1213 nodes can serve:
// 800 other model, 300 memory, 113 cpu; the largest free block is 6.2 GiB: the request fits with 1.8 GiB
// less". Reads every node, which takes about 100 us for 1,213 nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "place/fleet.h"

namespace carve::place {

struct Refusal {
  struct Count {
    std::string_view rule;  // The rule's name in the table of rules.
    uint32_t nodes;
  };
  // A request that the node would serve, with one amount reduced.
  struct Nearest {
    uint32_t node;
    std::optional<Bytes> memory;  // Reduced memory on each device.
    std::optional<Share> share;   // Reduced share of each device.
    std::optional<uint32_t> cpu;  // Reduced CPU on the node, in thousandths of a core.
  };
  uint32_t nodes = 0;
  uint32_t serving = 0;
  std::vector<Count> counts;  // By descending count, equal counts in the table's order.
  std::vector<Nearest> nearest;
  // `nearest` as text. Empty if there is none.
  std::string advice;
  std::string message;
};

Refusal explain(const Fleet&, const RequestShape&);

// Returns the name of the rule under which a node that cannot serve the request is counted.
std::string_view broken_rule(const Fleet&, uint32_t n, const RequestShape&);

}  // namespace carve::place
