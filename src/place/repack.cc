#include "place/repack.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "place/rules.h"

namespace carve::place {
namespace {

struct Victim {  // A card that might be emptied.
  uint32_t node;
  unsigned card;
  std::vector<size_t> tenants;
  Bytes held;
};

// Closes a card for everybody, and opens it again as it was.
void close(Fleet& fleet, uint32_t n, unsigned card, bool closed) {
  CardState state = fleet.cards(n)[card];
  state.sick = closed;
  fleet.set_card(n, card, state);
}

std::vector<Victim> victims(const Fleet& fleet, std::span<const Standing> standing, const Engine& engine) {
  std::vector<Victim> all;
  std::vector<size_t> at(fleet.cards(), SIZE_MAX);
  std::vector<bool> fixed(fleet.cards());
  for (size_t i = 0; i < standing.size(); ++i) {
    const Ask& ask = engine.ask(standing[i].kind);
    const Spot& spot = standing[i].spot;
    for (CardSet s = spot.cards; s != 0; s &= s - 1) {
      const auto card = static_cast<unsigned>(std::countr_zero(s));
      const uint32_t number = fleet.node(spot.node).first + card;
      if (ask.cards != 1 || ask.exclusive || ask.only != any_card || needed_share(ask) == whole_device)
        fixed[number] = true;
      if (at[number] == SIZE_MAX) at[number] = all.size(), all.push_back({spot.node, card, {}, {}});
      all[at[number]].tenants.push_back(i);
      all[at[number]].held.count += spot.memory.count;
    }
  }
  // Somebody stands there who was not told, or who cannot be moved: that card will not be empty.
  std::erase_if(all, [&](const Victim& v) {
    const CardState& c = fleet.cards(v.node)[v.card];
    return fixed[fleet.node(v.node).first + v.card] || c.sick || c.tenants != v.tenants.size();
  });
  std::ranges::stable_sort(all, {}, [](const Victim& v) { return std::tuple(v.tenants.size(), v.held); });
  return all;
}

}  // namespace

Repack repack(Engine& engine, std::span<const Standing> standing, unsigned wanted) {
  Fleet& fleet = engine.fleet();
  Repack plan;
  std::vector<Spot> now;
  for (const Standing& s : standing) now.push_back(s.spot);
  std::vector<bool> arrived(fleet.cards());  // Somebody was moved here: it is not emptied as well.
  std::vector<std::pair<uint32_t, unsigned>> closed;
  // Empty ones stay empty: to fill one in order to empty another gains nothing.
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    for (unsigned i = 0; i < fleet.cards(n).size(); ++i)
      if (fleet.cards(n)[i].tenants == 0 && !fleet.cards(n)[i].sick) {
        close(fleet, n, i, true);
        closed.emplace_back(n, i);
      }

  for (const Victim& v : victims(fleet, standing, engine)) {
    if (plan.emptied == wanted) break;
    if (arrived[fleet.node(v.node).first + v.card]) continue;
    close(fleet, v.node, v.card, true);
    std::vector<Move> moves;
    for (const size_t who : v.tenants) {
      const Ask& ask = engine.ask(standing[who].kind);
      fleet.give(ask, now[who]);
      const auto to = engine.find(standing[who].kind);
      fleet.take(ask, to ? *to : now[who]);
      if (!to) break;
      moves.push_back({who, now[who], *to});
    }
    if (moves.size() != v.tenants.size()) {  // Not all of them have a place: none of them moves.
      for (const Move& m : moves) {
        fleet.give(engine.ask(standing[m.who].kind), m.to);
        fleet.take(engine.ask(standing[m.who].kind), m.from);
      }
      close(fleet, v.node, v.card, false);
      continue;
    }
    closed.emplace_back(v.node, v.card);
    ++plan.emptied;
    for (const Move& m : moves) {
      now[m.who] = m.to;
      arrived[fleet.node(m.to.node).first + static_cast<unsigned>(std::countr_zero(m.to.cards))] = true;
      plan.moved.count += m.from.memory.count;
      plan.moved_share += needed_share(engine.ask(standing[m.who].kind)).basis_points;
      plan.moves.push_back(m);
    }
  }

  for (size_t i = plan.moves.size(); i-- > 0;) {
    const Move& m = plan.moves[i];
    fleet.give(engine.ask(standing[m.who].kind), m.to);
    fleet.take(engine.ask(standing[m.who].kind), m.from);
  }
  for (const auto& [n, card] : closed) close(fleet, n, card, false);
  return plan;
}

}  // namespace carve::place
