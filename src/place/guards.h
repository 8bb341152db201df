// Two guards for those who come seldom and can be served in few places. A gradient sees one step; a guard
// looks at how many arrivals are still to be expected until the fleet is full: H = what is free / mean demand
// of an arrival.
//
// Models: a group of requests that is bound to some models is expected to ask for H * (its demand per
// arrival).
//   Three times that is reserved on its models, the narrowest group first; a request that is bound less goes
//   there only where something is left.
// Slots: a slot of a request for k cards is k cards of one node that serve it. Where there are no more slots
// than
//   1.5 * H * (its arrivals), nobody else may destroy one.
// When nothing fits, the guards yield, the one that has most to spare first. Counting costs O(changed);
// asking costs about 50 ns for each guard there is.
#pragma once

#include <array>
#include <vector>

#include "place/fleet.h"
#include "place/workload.h"

namespace carve::place {

// What a decision may not use, as long as it can do without.
struct Bar {
  Models models = 0;
  uint8_t slots = 0;  // Bits of slot types.
};

class Guards {
 public:
  static constexpr unsigned most_slot_types = 8;
  using Bars = std::array<Bar, most_slot_types + 1>;

  void expect(const Fleet&, const Workload&);
  void changed(const Fleet&, uint32_t n);

  // Which slot types lose a slot when `ask` takes these cards.
  uint8_t destroyed(const Fleet&, uint32_t n, const Ask&, CardSet) const;

  // The bars for this request, the one that yields last first; how many of them.
  unsigned bars(const Fleet&, const Ask&, Bars& out) const;

 private:
  struct Group {
    Models models;
    uint64_t cards;  // Of the fleet that it may use.
    int64_t demand;  // Basis points of a card per arrival, times 2^30.
  };
  struct SlotType {
    Ask need;
    int64_t rate;  // Per arrival, in 2^-30.
    uint64_t slots = 0;
  };

  static unsigned slots_of(const SlotType&, const NodeState&, std::span<const CardState>);

  std::vector<Group> groups_;  // The narrowest first.
  std::vector<SlotType> types_;
  std::vector<std::array<uint8_t, most_slot_types>> counted_;  // By node.
  int64_t demand_ = 0;  // Of all: basis points per arrival, times 2^30.
};

}  // namespace carve::place
