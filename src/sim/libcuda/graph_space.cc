#include "sim/libcuda/graph_space.h"

#include <algorithm>

namespace carve::sim {
namespace {

// Returns which nodes come before node `of`.
std::vector<bool> ancestors(const Waits& waits, unsigned of) {
  std::vector<bool> seen(waits.size());
  std::vector<unsigned> left = waits[of];
  while (!left.empty()) {
    const unsigned at = left.back();
    left.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    left.insert(left.end(), waits[at].begin(), waits[at].end());
  }
  return seen;
}

}  // namespace

uint64_t space_of(const Waits& waits, std::vector<NodeSpan> spans, uint64_t step) {
  struct Slot {
    uint64_t bytes;
    unsigned freed;
  };
  std::ranges::sort(spans, {}, &NodeSpan::alloc);
  std::vector<Slot> slots;
  uint64_t all = 0;
  for (const NodeSpan& s : spans) {
    const std::vector<bool> before = ancestors(waits, s.alloc);
    Slot* best = nullptr;
    for (Slot& slot : slots)
      if (before[slot.freed] && slot.bytes >= s.bytes && (!best || slot.bytes < best->bytes)) best = &slot;
    if (best) {
      best->freed = s.free;
      continue;
    }
    const uint64_t bytes = (s.bytes + step - 1) / step * step;
    slots.push_back({bytes, s.free});
    all += bytes;
  }
  return all;
}

}  // namespace carve::sim
