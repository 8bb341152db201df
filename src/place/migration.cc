#include "place/migration.h"

#include <tuple>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {

std::optional<Migration> propose_migration(Engine& engine, RequestClass wanted,
                                           std::span<const PlacedRequest> standing, Application application) {
  if (engine.find(wanted, application)) return std::nullopt;
  const uint64_t free_before = engine.fleet().free_share();
  std::optional<Migration> best;
  const auto price = [](const Migration& r) { return std::tuple(r.moved, r.moved_share); };
  for (size_t i = 0; i < standing.size(); ++i) {
    const PlacedRequest& s = standing[i];
    Migration r{
        i, {}, {}, s.assignment.total(), {static_cast<uint32_t>(total_share(engine.shape(s.request_class)))}};
    if (best && price(r) >= price(*best)) continue;
    engine.release(s.request_class, s.assignment, s.application);
    // Only the node that the slice left has more free capacity than before.
    if (fitting(engine.fleet(), s.assignment.node, engine.shape(wanted))) {
      if (const auto room = engine.find(wanted, application)) {
        invariant(room->node == s.assignment.node, "the request fitted nowhere before the slice left");
        engine.take(wanted, *room, application);
        if (const auto to = engine.find(s.request_class, s.application)) {
          r.to = *to, r.room = *room;
          best = r;
        }
        engine.release(wanted, *room, application);
      }
    }
    engine.take(s.request_class, s.assignment, s.application);
  }
  invariant(engine.fleet().free_share() == free_before, "a proposal changes nothing");
  invariant(!best || best->who < standing.size());
  return best;
}

}  // namespace carve::place
