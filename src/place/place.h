// Chooses devices of one node for a request. From a snapshot of the devices and a request, it computes a
// placement, or each device's reason for rejecting the request. It applies the engine's hard rules and
// strategies to a fleet of one node. The functions are pure and use no clock, random number or state. A
// decision over 16 devices takes about 2 us.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "place/topology.h"

namespace carve::place {

// A device at the time of the decision.
struct DeviceSnapshot {
  Device device;
  Bytes free;  // Free bytes of the usable memory.
  Share free_share = whole_device;
  Bytes context;  // Bytes of one context that the slice pays; 0 if the reserve pays them.
  unsigned slices = 0;
  unsigned isolated = 0;         // Slices with limited memory.
  bool exclusive = false;        // An exclusive slice holds the device.
  bool shared_out = false;       // A slice's share is enforced, and best-effort slices are not admitted.
  std::optional<Policy> policy;  // The effective policy. No value if slices of any policy are allowed.
  std::string trouble;           // "lost from the bus since 12:04"; empty if healthy.
};

struct Verdict {
  unsigned index = 0;  // Device::index
  bool fits = false;
  std::string message;  // "fits; 20.2 GiB would stay free", or the first rule that is broken.
};

// A part of a slice on one device.
struct PlacementPart {
  size_t device = 0;  // Position in the snapshot.
  Bytes memory;
  Share share;

  friend bool operator==(const PlacementPart&, const PlacementPart&) = default;
};

struct Placement {
  std::vector<PlacementPart> parts;  // On distinct devices, in the order of the request's parts.
  std::vector<size_t> devices() const;
  // The loosest link between two of the devices. No value for one device or an unknown topology.
  std::optional<Link> connected;
};

// A slice with its position. A migration may propose to move it to make room.
struct PlacedSlice {
  std::string name;
  std::vector<PlacementPart> parts;
  bool exclusive = false;
  bool isolated = true;
  bool best_effort = false;      // No share of the slice is enforced.
  std::optional<Policy> policy;  // The policy under which the slice must stay; no value for any policy.
  std::string application;       // The application whose replicas are kept apart; empty if none.
};

struct Answer {
  std::optional<Placement> placement;
  std::vector<Verdict> verdicts;  // One per device, in the snapshot's order.
  // If there is no placement: the reason in one message, and a change with which the request would fit.
  std::string summary;
  std::string reasons;  // The summary without the change.
  // If there is no placement: more free capacity would not help, because too few devices have the same size.
  bool is_lasting = false;
};

// Places a validated request on at most max_node_devices devices. If placed slices are given, the summary
// also proposes a move that would make room, but no slice is moved. `links` has the connections between the
// devices, if known.
Answer place(std::span<const DeviceSnapshot> devices, const Request&, Strategy,
             std::span<const PlacedSlice> = {}, const Topology* links = nullptr);

// Checks a validated request whose parts were placed elsewhere (Request::placed) against the rules of their
// devices. No strategy decides.
Answer check_placed(std::span<const DeviceSnapshot> devices, const Request&);

// Plans moves that would leave `wanted` more devices of the node empty (place/consolidation.h). No slice is
// moved.
struct Plan {
  struct Move {
    // Index in the placed slices. A slice of several devices has one row per device that it leaves.
    size_t who;
    size_t from;  // Positions in `devices`.
    size_t to;
  };
  std::vector<Move> moves;  // Ordered such that each move fits when it is made.
  std::vector<size_t> emptied;
  Bytes moved;
};
Plan plan(std::span<const DeviceSnapshot> devices, Strategy, std::span<const PlacedSlice>, unsigned wanted,
          const Topology* links = nullptr);

// Returns how a strategy chooses: "the fullest device that fits, on the fullest node".
std::string_view choice(Strategy);

}  // namespace carve::place
