// Looks ahead: how much of a node would still be free after it was offered what is likely to come? W(state)
// is the mean free compute left when the node is offered each of 16 fixed sequences of 200 typical requests,
// each taking the tightest cards that it fits on. The node (and card) where a placement lowers W most is
// where it costs the future least: the space that it takes would have been wasted anyway. Differences are
// compared in steps of 30 thousandths of a card, equals go to the lowest card and the first node; the guards
// of carve hold as well.
//
// A fill takes about 10 us; what a state comes to is remembered (a table of 2^18, 4 MiB), for nodes of one
// model in one state are one question. With arrivals that never leave it places 0.8 to 1.4 % more than FGD;
// where tenants leave, the guards alone do as well (docs/decisions/0004), so it is a mode and not the
// default.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "place/guards.h"
#include "place/order.h"
#include "place/rules.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

constexpr unsigned sequences = 16;
constexpr unsigned offers = 200;
constexpr int64_t step = 300;  // Basis points of a card. A score is a byte: beyond six cards all is one.
constexpr int64_t unchanged = 50;

uint64_t mixed(uint64_t z) {  // SplitMix64's output function.
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// What of a node a fill consumes.
struct Room {
  struct Card {
    uint32_t share;
    uint64_t memory;
    friend auto operator<=>(const Card&, const Card&) = default;
  };
  uint32_t cpu;
  uint64_t host;
  unsigned model;
  unsigned count;
  uint64_t usable;  // Of one card: those of a node are alike.
  std::array<Card, most_cards> cards;
};

class Lookahead : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const Ask& ask, CardSet fitting) const override {
    const NodeState& node = fleet.node(n);
    const auto cards = fleet.cards(n);
    Room room{node.cpu_free, node.host_free.count, node.model, static_cast<unsigned>(cards.size()), 0, {}};
    for (unsigned i = 0; i < cards.size(); ++i) {
      const CardState& c = cards[i];
      const bool closed = c.sick || c.partitioned || c.exclusive;
      room.cards[i] = closed ? Room::Card{0, 0} : Room::Card{c.free_share.basis_points, c.free.count};
      room.usable = std::max(room.usable, c.usable.count);
    }
    const int64_t before = left_of(room);
    room.cpu -= ask.cpu_milli;
    room.host -= ask.host_memory.count;

    Score best;
    const auto consider = [&](CardSet set) {
      Room then = room;
      for (CardSet s = set; s != 0; s &= s - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(s));
        then.cards[i].share -= needed_share(ask).basis_points;
        then.cards[i].memory -= need(ask, cards[i]).count;
      }
      int64_t steps = before - left_of(then);
      steps =
          steps >= 0 ? steps / (step * sequences) : -((-steps + step * sequences - 1) / (step * sequences));
      const auto value = static_cast<uint8_t>(std::clamp<int64_t>(unchanged + steps, 1, 255));
      if (value > best.value) best = {value, set};
    };
    if (ask.cards == 1) {
      for (CardSet s = fitting; s != 0; s &= s - 1) {
        const auto i = static_cast<unsigned>(std::countr_zero(s));
        bool seen = false;
        for (unsigned j = 0; j < i && !seen; ++j)
          seen =
              (fitting >> j & 1) != 0 && room.cards[j] == room.cards[i] && cards[j].usable == cards[i].usable;
        if (!seen) consider(s & -s);
      }
    } else {
      consider(first_by(cards, fitting, ask.cards, [&](const CardState& c) { return freedom(ask, c); }));
    }
    return best;
  }

  void expect(const Fleet& fleet, const Workload& workload) override {
    guards_.expect(fleet, workload);
    const Workload types = typical(workload);
    std::vector<int64_t> up_to;  // Sums of weights.
    int64_t all = 0;
    for (const Type& t : types) up_to.push_back(all += t.weight);
    kinds_.clear();
    for (const Type& t : types) kinds_.push_back(t.ask);
    for (unsigned k = 0; k < sequences; ++k)
      for (auto& of_model : offered_[k]) of_model.clear();
    least_cpu_ = UINT32_MAX;
    for (const Ask& a : kinds_) {
      if (a.cards == 0) continue;
      least_cpu_ = std::min(least_cpu_, a.cpu_milli);
    }
    // Each sequence holds every type as often as it is likely, to within one: the offers' places in the sum
    // of weights are evenly spaced, and no two sequences have the same ones. Only their order is drawn.
    uint64_t draws = 0;
    for (unsigned k = 0; all > 0 && k < sequences; ++k) {
      std::array<uint16_t, offers> sequence;
      for (unsigned i = 0; i < offers; ++i) {
        const auto place = static_cast<int64_t>(static_cast<__int128>(all) * (i * sequences + k) /
                                                (uint64_t{sequences} * offers));
        sequence[i] = static_cast<uint16_t>(std::ranges::upper_bound(up_to, place) - up_to.begin());
      }
      for (unsigned i = offers; i > 1; --i)
        std::swap(sequence[i - 1], sequence[mixed(++draws * 0x9e3779b97f4a7c15) % i]);
      for (const uint16_t type : sequence)
        for (unsigned t = 0; t < fleet.models(); ++t)
          if (kinds_[type].cards == 0 || (kinds_[type].models >> t & 1) != 0) offered_[k][t].push_back(type);
    }
    memo_.assign(memo_size, {});
  }
  bool expects() const override { return true; }
  bool learns() const override { return true; }
  void changed(const Fleet& fleet, uint32_t n) override { guards_.changed(fleet, n); }
  Guards* guards() override { return &guards_; }

 private:
  static constexpr size_t memo_size = 1 << 18;
  struct Known {
    uint64_t key = 0;
    int64_t left = 0;
  };

  // Sums over the sequences, in basis points.
  int64_t left_of(Room room) const {
    std::sort(room.cards.begin(), room.cards.begin() + room.count);
    uint64_t key = mixed(room.model * 64 + room.count + 1);
    const auto add = [&](uint64_t word) { key = mixed(key ^ word * 0x9e3779b97f4a7c15) + 1; };
    add(room.cpu), add(room.host);
    for (unsigned i = 0; i < room.count; ++i) add(room.cards[i].share), add(room.cards[i].memory);
    if (memo_.empty()) return 0;
    Known& known = memo_[key % memo_size];
    if (known.key == key) return known.left;
    int64_t left = 0;
    for (unsigned k = 0; k < sequences; ++k) left += filled(room, offered_[k][room.model]);
    known = {key, left};
    return left;
  }

  // Offers the sequence; what is left.
  int64_t filled(Room room, const std::vector<uint16_t>& sequence) const {
    for (const uint16_t type : sequence) {
      const Ask& a = kinds_[type];
      if (a.cpu_milli > room.cpu || a.host_memory.count > room.host) continue;
      if (a.cards != 0 && !taken(room, a)) continue;
      room.cpu -= a.cpu_milli;
      room.host -= a.host_memory.count;
      if (room.cpu < least_cpu_) break;  // Nobody who wants a card comes any more.
    }
    int64_t left = 0;
    for (unsigned i = 0; i < room.count; ++i) left += room.cards[i].share;
    return left;
  }

  // The tightest cards on which the request fits.
  static bool taken(Room& room, const Ask& a) {
    const uint32_t share = needed_share(a).basis_points;
    CardState whole;
    whole.usable = {room.usable};
    const uint64_t memory = need(a, whole).count;
    CardSet set = 0;
    for (unsigned wanted = a.cards; wanted > 0; --wanted) {
      unsigned best = most_cards;
      for (unsigned i = 0; i < room.count; ++i) {
        const Room::Card& c = room.cards[i];
        if (c.share < share || c.memory < memory || (set >> i & 1) != 0) continue;
        if (best == most_cards || c < room.cards[best]) best = i;
      }
      if (best == most_cards) return false;
      set |= 1u << best;
    }
    for (; set != 0; set &= set - 1) {
      Room::Card& c = room.cards[static_cast<unsigned>(std::countr_zero(set))];
      c.share -= share;
      c.memory -= memory;
    }
    return true;
  }

  // A fill does not see who else could have gone elsewhere: thrice the reserve makes up for it.
  Guards guards_{3};
  std::vector<Ask> kinds_;
  std::array<std::array<std::vector<uint16_t>, most_models>, sequences> offered_;
  uint32_t least_cpu_ = 0;
  mutable std::vector<Known> memo_;  // Remembered answers, not state: the same question has the same answer.
};

}  // namespace

std::unique_ptr<Scoring> lookahead() { return std::make_unique<Lookahead>(); }

}  // namespace carve::place
