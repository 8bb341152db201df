// Guards for rare requests that only few nodes or devices can serve. A gradient considers only one placement.
// A guard considers the number of requests of a class that may still arrive: the class's fair share of the
// fleet (all devices * its part of the arrivals' demand) minus its current part. Demand has two resources,
// compute and memory. The resource that the arrivals exhaust first determines how many more arrivals the
// fleet can serve. While no slice leaves, that is the number that will still arrive until the fleet is full.
// If slices come and go, it is the shortfall from the expected number of slices.
//
// Models: for a group of requests that is bound to some models, the expected remainder is reserved there.
//   The narrowest group comes first; a request that allows more models goes there only if something is left.
// Kept nodes: a request for more than half of the largest node's devices needs a node nearly for itself, and
//   such a node never becomes free by chance. So the nodes with the fewest slices are kept for it: as many as
//   it may still expect, and one and a half standard deviations more, because the number of placed requests
//   varies by its square root. No other request goes there, so these nodes drain within a few lifetimes.
// Slots: a slot of another request for k devices is a set of k devices of one node that, with the node's CPU,
//   serve it. If there are at most 1.5 * (free capacity / mean demand of an arrival) * (its arrivals) slots,
//   no other request may destroy one.
//
// If nothing fits, the guards yield one after the other; the guard with the most to spare yields first.
// Counting costs O(changed); a query costs about 50 ns per guard. Choosing another node to keep reads all
// nodes (10 ns each). In fleets of less than 4,096 nodes, this is done for each large request that is placed
// or ends; in a larger fleet, once for every (nodes / 4,096) of them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "place/fleet.h"
#include "place/part_devices.h"
#include "place/workload.h"

namespace carve::place {

inline constexpr uint32_t block_nodes = 64;  // Scans proceed in blocks of this many nodes.

// The capacity that a decision may use only if there is no other.
struct ReservedCapacity {
  Models models = 0;
  uint8_t slots = 0;  // Bits of the slot types that may lose no slot.
  uint8_t kept = 0;   // Bits of the slot types whose kept nodes are closed.
};

// Compute in basis points of a device, memory in MiB.
struct Resources {
  int64_t compute = 0, memory = 0;

  friend bool operator==(const Resources&, const Resources&) = default;
};
using Resource = int64_t Resources::*;
inline constexpr Resource resources[] = {&Resources::compute, &Resources::memory};

class Guards {
 public:
  static constexpr unsigned max_slot_types = 8;
  using Reservations = std::array<ReservedCapacity, max_slot_types + 1>;

  // `reserve` is a factor for the capacity that is reserved for a group of requests on its models.
  explicit Guards(int64_t reserve = 1) : reserve_(reserve) {}

  void set_workload_model(const Fleet&, const WorkloadModel&);
  void changed(const Fleet&, uint32_t n);

  // Records that a slice with this request is now on node n, or no longer.
  void add_placed(const Fleet&, const RequestShape&, uint32_t n);
  void remove_placed(const Fleet&, const RequestShape&, uint32_t n);

  // Updates which nodes are kept, to as many as are wanted now. The engine calls it before each decision.
  void settle(const Fleet&);

  // Returns the bits of the slot types for which node n is kept.
  uint8_t kept(uint32_t n) const { return n < kept_.size() ? kept_[n] : uint8_t{0}; }
  // Returns kept() for the nodes of a block, for scans.
  std::span<const uint8_t, block_nodes> kept_of_block(size_t block) const;

  // Returns the bits of the slot types that would lose a slot if the request took these devices.
  uint8_t destroyed(const Fleet&, uint32_t n, const RequestShape&, const PartDevices&) const;

  // Writes the reserved capacities that apply to this request, those that yield last first. Returns their
  // number.
  unsigned reservations(const Fleet&, const RequestShape&, Reservations& out) const;

  size_t bytes() const { return nodes_.capacity() * sizeof(Seen) + kept_.capacity(); }

 private:
  struct Group {
    Models models;
    uint64_t devices;  // Devices of the fleet that the group may use.
    Resources demand;  // Per arrival, times 2^30.
    Resources held;
  };
  struct SlotType {
    RequestShape need;
    int64_t rate;  // Requests per arrival, in 2^-30.
    bool large;    // Nodes are kept for this type.
    uint64_t slots = 0;
    int64_t held = 0;    // Number of placed requests.
    int64_t kept = 0;    // Number of kept nodes.
    uint64_t again = 0;  // No node was left to keep. Try again at this change of the fleet.
  };
  struct Seen {  // State of one node.
    std::array<uint8_t, max_slot_types> slots{};
    uint8_t large = 0;  // Large requests on this node.
  };
  struct Large {
    RequestShape shape;
    uint32_t node;
  };
  struct ModelDemand {  // Demand of the requests that are bound to these models.
    Models models;
    Resources amounts;
  };

  static constexpr uint32_t never = UINT32_MAX;

  static unsigned slots_of(const SlotType&, const NodeState&, std::span<const DeviceState>);
  SlotType* type_of(const RequestShape&);
  void resize(size_t nodes);
  Seen& seen(uint32_t n);
  void count_large(const Large&, int count);
  void count_held(const Fleet&, const RequestShape&, uint32_t n, int count);
  Resource exhausted_first(const Resources& room) const;
  Models closed(const Fleet&, const RequestShape&) const;
  int64_t wanted(const Fleet&, const SlotType&) const;
  uint32_t to_drain(const Fleet&, const SlotType&, uint32_t n) const;

  std::vector<Group> groups_;  // Narrowest group first.
  std::vector<SlotType> types_;
  std::vector<Seen> nodes_;
  std::vector<uint8_t> kept_;  // Bits of slot types for each node; whole blocks.
  std::vector<Large> large_;
  std::vector<ModelDemand> demand_of_models_;
  std::vector<std::pair<uint32_t, uint32_t>> candidates_;  // Slices and number of each candidate node.
  int64_t reserve_;
  Models here_ = 0;   // The models of the fleet.
  Resources demand_;  // For all types, per arrival, times 2^30.
};

}  // namespace carve::place
