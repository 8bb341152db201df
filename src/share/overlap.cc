#include "share/overlap.h"

#include <algorithm>
#include <utility>

#include "core/invariant.h"

namespace carve::share {
namespace {

bool is_empty(const Parts& parts) {
  return std::ranges::all_of(parts, [](Ns ns) { return ns == 0; });
}

}  // namespace

Ns split(Ns all, const Parts& had, Parts& parts) {
  Ns total = 0, sum = 0, given = 0;
  for (const Ns ns : had) total += ns;
  all = std::min(all, total);
  for (unsigned i = 0; i < max_clients; ++i) {
    parts[i] = 0;
    if (had[i] == 0) continue;
    sum += had[i];
    // Each part is a difference of running sums, so that no nanosecond is lost to rounding.
    const auto up_to = static_cast<Ns>(static_cast<__int128>(all) * sum / total);
    parts[i] = up_to - std::exchange(given, up_to);
  }
  invariant(given == all);
  return given;
}

Ns split_supported(Ns all, const Parts& had, const Supports& supports, Parts& parts) {
  Parts open = had, fixed{};
  Ns supported = 0, given = split(all, open, parts);
  for (bool changed = true; std::exchange(changed, false);) {
    for (unsigned i = 0; i < max_clients; ++i) {
      if (open[i] == 0 || parts[i] <= supports[i].credit) continue;
      open[i] = 0;
      fixed[i] = supports[i].credit;
      supported += fixed[i];
      changed = true;
    }
    if (changed) given = split(all - supported, open, parts);
  }
  if (is_empty(open)) {
    open = had;
    for (unsigned i = 0; i < max_clients; ++i)
      if (!supports[i].is_shown) open[i] = 0;
    return split(all, is_empty(open) ? had : open, parts);
  }
  for (unsigned i = 0; i < max_clients; ++i) parts[i] += fixed[i];
  return supported + given;
}

}  // namespace carve::share
