// Why nothing fits, over a whole fleet: each node counted once under the first rule that it breaks, as
// kube-scheduler words it, then what is nearest to fitting. "0/1213 nodes can serve: 800 other model, 300
// memory, 113 cpu; the largest free piece is 6.2 GiB: with 1.8 GiB less it would fit". Looks at every node:
// about 100 us for 1,213.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "place/fleet.h"

namespace carve::place {

struct Refusal {
  struct Count {
    std::string_view rule;  // Its name in the table of rules.
    uint32_t nodes;
  };
  struct Nearest {  // One thing less, and node would serve; all else as it was asked for.
    uint32_t node;
    std::optional<Bytes> memory;  // At most this on each device.
    std::optional<Share> share;   // At most this of each device.
    std::optional<uint32_t> cpu;  // At most this of the node, in thousandths of a core.
  };
  uint32_t nodes = 0;
  uint32_t serving = 0;
  std::vector<Count> counts;  // The most frequent first, equals in the table's order.
  std::vector<Nearest> nearest;
  std::string advice;  // What of `nearest` to ask for instead, in words; empty where there is nothing.
  std::string sentence;
};

Refusal explain(const Fleet&, const RequestShape&);

}  // namespace carve::place
