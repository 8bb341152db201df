#include "sim/libcuda/graph_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace carve::sim {

bool order_of(const Waits& waits, std::vector<unsigned>* order) {
  std::vector<std::vector<unsigned>> followers(waits.size());
  std::vector<size_t> missing(waits.size());
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> free;
  for (unsigned i = 0; i < waits.size(); ++i) {
    missing[i] = waits[i].size();
    for (unsigned w : waits[i]) followers[w].push_back(i);
    if (waits[i].empty()) free.push(i);
  }
  order->clear();
  while (!free.empty()) {
    const unsigned next = free.top();
    free.pop();
    order->push_back(next);
    for (unsigned f : followers[next])
      if (--missing[f] == 0) free.push(f);
  }
  return order->size() == waits.size();
}

std::vector<unsigned> lanes_of(const Waits& waits, unsigned most) {
  constexpr unsigned no_index = ~0u;
  std::vector<unsigned> lane(waits.size()), last, length;  // For each lane: its last node and its length.
  for (unsigned i = 0; i < waits.size(); ++i) {
    unsigned chosen = no_index;
    for (unsigned w : waits[i])
      if (last[lane[w]] == w) {
        chosen = lane[w];
        break;
      }
    if (chosen == no_index && last.size() < most) {
      chosen = static_cast<unsigned>(last.size());
      last.push_back(no_index);
      length.push_back(0);
    }
    if (chosen == no_index)
      chosen = static_cast<unsigned>(std::min_element(length.begin(), length.end()) - length.begin());
    lane[i] = chosen;
    last[chosen] = i;
    ++length[chosen];
  }
  return lane;
}

std::vector<unsigned> ends_of(const Waits& waits) {
  std::vector<bool> waited(waits.size());
  for (const auto& w : waits)
    for (unsigned i : w) waited[i] = true;
  std::vector<unsigned> ends;
  for (unsigned i = 0; i < waits.size(); ++i)
    if (!waited[i]) ends.push_back(i);
  return ends;
}

bool all_before(const Waits& waits, const std::vector<unsigned>& wanted, const std::vector<unsigned>& from) {
  std::vector<bool> seen(waits.size());
  std::vector<unsigned> left = from;
  while (!left.empty()) {
    const unsigned at = left.back();
    left.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    left.insert(left.end(), waits[at].begin(), waits[at].end());
  }
  return std::ranges::all_of(wanted, [&](unsigned i) { return seen[i]; });
}

}  // namespace carve::sim
