// Guards for those who come seldom and can be served in few places. A gradient sees one step; a guard knows
// what is still to be expected of somebody: the fair share of the fleet (all devices * its part of the
// arrivals' demand) less what it holds already. While nobody leaves, that is what will still arrive until the
// fleet is full; where slices come and go, it is what is missing of what should be standing.
//
// Models: a group of requests that is bound to some models has what it may still expect reserved there, the
//   narrowest group first; a request that is bound less goes there only where something is left.
// Kept nodes: a request for more than half of the largest node's devices needs a node nearly for itself, and
//   no such node ever comes by chance. So many nodes as it may still expect (and two standard deviations: how
//   many stand at a time scatters by the root of their number) are kept: those with the fewest slices.
//   Nobody else goes there, so they drain within a few lifetimes.
// Slots: a slot of another request for k devices is k devices of one node, and its CPU, that serve it. Where
//   there are no more slots than 1.5 * (what is free / mean demand of an arrival) * (its arrivals), nobody
//   else may destroy one.
// When nothing fits, the guards yield, the one that has most to spare first. Counting costs O(changed);
// asking costs about 50 ns for each guard there is; choosing another node to keep looks at all of them (10 ns
// each), once for each large request that comes or leaves, in larger fleets once for every nodes / 4096 of
// them.
#pragma once

#include <array>
#include <vector>

#include "place/fleet.h"
#include "place/workload.h"

namespace carve::place {

// What a decision may not use, as long as it can do without.
struct ReservedCapacity {
  Models models = 0;
  uint8_t slots = 0;  // Bits of slot types that may lose none.
  uint8_t kept = 0;   // Bits of slot types whose kept nodes are closed.
};

class Guards {
 public:
  static constexpr unsigned max_slot_types = 8;
  using Reservations = std::array<ReservedCapacity, max_slot_types + 1>;

  // reserve: times what a group of requests may still expect on its models.
  explicit Guards(int64_t reserve = 1) : reserve_(reserve) {}

  void set_workload_model(const Fleet&, const WorkloadModel&);
  void changed(const Fleet&, uint32_t n);

  // Somebody with this request stands on node n from now on, or no longer.
  void add_placed(const Fleet&, const RequestShape&, uint32_t n);
  void remove_placed(const RequestShape&, uint32_t n);

  // Keeps as many nodes as are wanted now. To be called before a decision.
  void settle(const Fleet&);

  // Slot types for which node n is kept.
  uint8_t kept(uint32_t n) const { return n < nodes_.size() ? nodes_[n].kept : uint8_t{0}; }

  // Which slot types lose a slot when `ask` takes these devices.
  uint8_t destroyed(const Fleet&, uint32_t n, const RequestShape&, DeviceSet) const;

  // The bars for this request, the one that yields last first; how many of them.
  unsigned reservations(const Fleet&, const RequestShape&, Reservations& out) const;

  size_t bytes() const { return nodes_.capacity() * sizeof(Seen); }

 private:
  struct Group {
    Models models;
    uint64_t devices;  // Of the fleet that it may use.
    int64_t demand;    // Basis points of a device per arrival, times 2^30.
    int64_t held = 0;  // Basis points of a device.
  };
  struct SlotType {
    RequestShape need;
    int64_t rate;  // Per arrival, in 2^-30.
    bool large;    // Nodes are kept for it.
    uint64_t slots = 0;
    int64_t held = 0;    // How many stand.
    int64_t kept = 0;    // Nodes.
    uint64_t again = 0;  // No node was left to keep: not before this change of the fleet.
  };
  struct Seen {  // Of a node.
    std::array<uint8_t, max_slot_types> slots{};
    uint8_t kept = 0;
    uint8_t large = 0;  // Large requests that stand here.
  };
  struct Large {
    RequestShape shape;
    uint32_t node;
  };
  struct Held {  // By requests that are bound to these models.
    Models models;
    int64_t share;
  };

  static constexpr uint32_t never = UINT32_MAX;

  static unsigned slots_of(const SlotType&, const NodeState&, std::span<const DeviceState>);
  SlotType* type_of(const RequestShape&);
  Seen& seen(uint32_t n);
  void count_large(const Large&, int count);
  void count_held(const RequestShape&, int count);
  int64_t wanted(const Fleet&, const SlotType&) const;
  uint32_t to_drain(const Fleet&, const SlotType&, uint32_t n) const;

  std::vector<Group> groups_;  // The narrowest first.
  std::vector<SlotType> types_;
  std::vector<Seen> nodes_;
  std::vector<Large> large_;
  std::vector<Held> held_;
  std::vector<std::pair<uint32_t, uint32_t>> candidates_;  // Slices and number of nodes.
  int64_t reserve_;
  Models here_ = 0;     // Those of the fleet.
  int64_t demand_ = 0;  // Of all: basis points per arrival, times 2^30.
};

}  // namespace carve::place
