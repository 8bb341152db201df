// Fill one device before the next: what stays free stays free in large pieces.
#include <algorithm>

#include "place/place.h"

namespace carve::place {

Policy binpack() {
  return [](std::span<const Card> all, const Request&, std::vector<size_t>& candidates) {
    std::ranges::stable_sort(candidates, {}, [&](size_t i) { return all[i].free; });
  };
}

}  // namespace carve::place
