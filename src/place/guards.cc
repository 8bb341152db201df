#include "place/guards.h"

#include <algorithm>
#include <bit>

#include "place/rules.h"

namespace carve::place {
namespace {

using Wide = __int128;

int64_t demand_of(const Ask& a) { return int64_t{a.cards} * needed_share(a).basis_points; }

bool serves(const CardState& c, const Ask& a) {
  return !c.sick && !c.partitioned && !c.exclusive && c.free_share >= needed_share(a) && c.free >= need(a, c);
}

bool same_slot(const Ask& a, const Ask& b) {
  return a.cards == b.cards && a.share == b.share && a.memory == b.memory && a.part == b.part &&
         a.exclusive == b.exclusive && a.models == b.models;
}

}  // namespace

unsigned Guards::slots_of(const SlotType& type, const NodeState& node, std::span<const CardState> cards) {
  if (!node.up || (type.need.models >> node.model & 1) == 0) return 0;
  unsigned count = 0;
  for (const CardState& c : cards) count += serves(c, type.need);
  return count / type.need.cards;
}

void Guards::expect(const Fleet& fleet, const Workload& workload) {
  groups_.clear();
  types_.clear();
  demand_ = 0;
  const Models here = fleet.models() == most_models ? any_model : (Models{1} << fleet.models()) - 1;
  for (const Type& type : workload) {
    const Ask& a = type.ask;
    if (a.cards == 0) continue;
    demand_ += type.weight * demand_of(a);
    const Models models = a.models & here;
    if (models != here && models != 0) {
      auto group = std::ranges::find(groups_, models, &Group::models);
      if (group == groups_.end()) {
        uint64_t cards = 0;
        for (unsigned t = 0; t < fleet.models(); ++t) cards += (models >> t & 1) * fleet.cards_of_model(t);
        group = groups_.insert(group, {models, cards, 0});
      }
      group->demand += type.weight * demand_of(a);
    }
    if (a.cards > 1) {
      auto slot = std::ranges::find_if(types_, [&](const SlotType& s) { return same_slot(s.need, a); });
      if (slot == types_.end()) {
        if (types_.size() == most_slot_types) continue;  // The rarest come last.
        slot = types_.insert(slot, {a, 0});
      }
      slot->rate += type.weight;
    }
  }
  std::ranges::stable_sort(groups_, {}, &Group::cards);
  counted_.assign(fleet.nodes(), {});
  for (uint32_t n = 0; n < fleet.nodes(); ++n) changed(fleet, n);
}

void Guards::changed(const Fleet& fleet, uint32_t n) {
  if (types_.empty()) return;
  if (n >= counted_.size()) counted_.resize(fleet.nodes());
  for (size_t j = 0; j < types_.size(); ++j) {
    const unsigned now = slots_of(types_[j], fleet.node(n), fleet.cards(n));
    types_[j].slots += now - uint64_t{counted_[n][j]};  // Modulo 2^64.
    counted_[n][j] = static_cast<uint8_t>(now);
  }
}

uint8_t Guards::destroyed(const Fleet& fleet, uint32_t n, const Ask& ask, CardSet set) const {
  if (types_.empty() || set == 0) return 0;
  const auto cards = fleet.cards(n);
  std::array<CardState, most_cards> after;
  std::ranges::copy(cards, after.begin());
  for (CardSet s = set; s != 0; s &= s - 1) {
    CardState& c = after[static_cast<unsigned>(std::countr_zero(s))];
    c.free = minus(c.free, need(ask, c));
    c.free_share.basis_points -= needed_share(ask).basis_points;
    c.exclusive |= ask.exclusive;
  }
  unsigned out = 0;
  for (size_t j = 0; j < types_.size(); ++j)
    if (slots_of(types_[j], fleet.node(n), {after.data(), cards.size()}) <
        slots_of(types_[j], fleet.node(n), cards))
      out |= 1u << j;
  return static_cast<uint8_t>(out);
}

unsigned Guards::bars(const Fleet& fleet, const Ask& ask, Bars& out) const {
  if (ask.cards == 0 || demand_ == 0) return 0;
  unsigned count = 0;
  const auto free = static_cast<int64_t>(fleet.free_share());

  // Models on which nothing is left beyond what narrower groups are expected to need.
  const Models here = fleet.models() == most_models ? any_model : (Models{1} << fleet.models()) - 1;
  const Models own = ask.models & here;
  uint64_t own_cards = 0;
  for (unsigned t = 0; t < fleet.models(); ++t) own_cards += (own >> t & 1) * fleet.cards_of_model(t);
  std::array<int64_t, most_models> left{};
  for (unsigned t = 0; t < fleet.models(); ++t) left[t] = static_cast<int64_t>(fleet.free_share_of_model(t));
  Models closed = 0;
  for (const Group& g : groups_) {
    if (g.cards >= own_cards || (own & ~g.models) == 0) continue;  // Not narrower, or its own.
    int64_t room = 0;
    for (Models s = g.models; s != 0; s &= s - 1) room += left[static_cast<unsigned>(std::countr_zero(s))];
    // 3 * H * demand of the group, with H = free / demand of all.
    const auto reserve = static_cast<int64_t>(Wide{3} * free * g.demand / demand_);
    for (Models s = g.models; s != 0; s &= s - 1) {
      int64_t& of = left[static_cast<unsigned>(std::countr_zero(s))];
      of -= reserve >= room ? of : static_cast<int64_t>(Wide{reserve} * of / room);
    }
  }
  for (Models s = own; s != 0; s &= s - 1) {
    const auto t = static_cast<unsigned>(std::countr_zero(s));
    if (left[t] < demand_of(ask) && left[t] < static_cast<int64_t>(fleet.free_share_of_model(t)))
      closed |= Models{1} << t;
  }

  // Slot types that have none to spare, the scarcest first.
  std::array<std::pair<Wide, uint8_t>, most_slot_types> scarce;
  unsigned scarce_count = 0;
  for (size_t j = 0; j < types_.size(); ++j) {
    const SlotType& type = types_[j];
    if (type.slots == 0 || same_slot(type.need, ask)) continue;
    // slots <= 1.5 * H * rate, with H = free * 2^30 / demand_ and rate in 2^-30.
    const Wide expected = Wide{free} * type.rate;  // Over demand_.
    if (Wide{2} * type.slots * demand_ > 3 * expected) continue;
    // slots / expected, as one number to order by.
    const Wide spare = (Wide{type.slots} * demand_ << 20) / (expected + 1);
    unsigned at = scarce_count++;
    for (; at > 0 && scarce[at - 1].first > spare; --at) scarce[at] = scarce[at - 1];
    scarce[at] = {spare, static_cast<uint8_t>(1u << j)};
  }
  if (closed != 0) out[count++] = {closed, 0};
  for (unsigned i = 0; i < scarce_count; ++i) out[count++] = {0, scarce[i].second};
  return count;
}

}  // namespace carve::place
