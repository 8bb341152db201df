#include "place/repair.h"

#include <bit>
#include <tuple>

#include "place/rules.h"

namespace carve::place {

std::optional<Repair> one_move(Engine& engine, Kind wanted, std::span<const Standing> standing) {
  if (engine.find(wanted)) return std::nullopt;
  std::optional<Repair> best;
  const auto price = [](const Repair& r) { return std::tuple(r.moved, r.moved_share); };
  for (size_t i = 0; i < standing.size(); ++i) {
    const Standing& s = standing[i];
    const Ask& ask = engine.ask(s.kind);
    const auto cards = static_cast<unsigned>(std::popcount(s.spot.cards));
    Repair r{i, {}, {}, {s.spot.memory.count * cards}, {needed_share(ask).basis_points * cards}};
    if (best && price(r) >= price(*best)) continue;
    engine.fleet().give(ask, s.spot);
    // Only the node that it left has become roomier.
    if (fitting(engine.fleet(), s.spot.node, engine.ask(wanted))) {
      if (const auto room = engine.find(wanted)) {
        engine.fleet().take(engine.ask(wanted), *room);
        if (const auto to = engine.find(s.kind)) {
          r.to = *to, r.room = *room;
          best = r;
        }
        engine.fleet().give(engine.ask(wanted), *room);
      }
    }
    engine.fleet().take(ask, s.spot);
  }
  return best;
}

}  // namespace carve::place
