// The emptiest device first: tenants meet as few others as possible.
#include <algorithm>

#include "place/place.h"

namespace carve::place {

Policy spread() {
  return [](std::span<const Card> all, const Request&, std::vector<size_t>& candidates) {
    std::ranges::stable_sort(candidates, std::ranges::greater{}, [&](size_t i) { return all[i].free; });
  };
}

}  // namespace carve::place
