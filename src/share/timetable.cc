#include "share/timetable.h"

#include "core/invariant.h"

namespace carve::share {

void make_timetable(std::span<const Entitlement> clients, std::span<Window> out) {
  invariant(out.size() >= clients.size());
  const auto has_window = [](const Entitlement& t) {
    return t.policy == Policy::fixed_share && t.share.basis_points != 0;
  };
  int64_t sum = 0;
  for (const Entitlement& t : clients)
    if (has_window(t)) sum += t.share.basis_points;
  Ns offset = 0;
  for (size_t i = 0; i < clients.size(); ++i) {
    out[i] = {};
    if (!has_window(clients[i]) || sum > 10000) continue;
    const Ns length = timetable_period * clients[i].share.basis_points / 10000;
    out[i] = {timetable_period, offset, length};
    offset += length;
    invariant(length > 0 && offset <= timetable_period, "windows follow each other within one period");
  }
}

}  // namespace carve::share
