// Which devices of one machine a request lands on: a snapshot and a request in, a placement or each device's
// reason out. It is the engine's table of hard rules and its policies over a fleet of one node. Pure: no
// clock, no chance, no state; the same question gets the same answer. Deciding over 16 devices takes about 2
// us.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "place/topology.h"

namespace carve::place {

// One device at the moment of the question.
struct DeviceSnapshot {
  Device device;
  Bytes free;  // Of the usable memory.
  Share free_share = whole_device;
  Bytes context;  // What one context takes of a slice here; 0: nothing, the reserve pays.
  unsigned slices = 0;
  unsigned isolated = 0;         // Those of the slices whose memory is limited.
  bool exclusive = false;        // Its one slice wants it alone.
  bool shared_out = false;       // Somebody's share of its compute is enforced, and only such are admitted.
  std::optional<Policy> policy;  // Its effective one; none: any may come.
  std::string trouble;           // Empty: healthy. "lost from the bus since 12:04".
};

struct Verdict {
  unsigned index = 0;  // Device::index
  bool fits = false;
  std::string sentence;  // "fits, 20.2 GiB would stay free", or the first rule that is broken.
};

struct Placement {
  std::vector<size_t> devices;  // Positions in the snapshot, distinct.
  Bytes memory;                 // On each of them: the parts are equal.
  Share share;
  std::optional<Link> connected;  // Several devices whose topology is known: the loosest link between two.
};

// Somebody who stands on the machine: what a move could make room with.
struct PlacedSlice {
  std::string name;
  std::vector<size_t> devices;  // Positions in the snapshot.
  Bytes memory;                 // On each.
  Share share;
  bool exclusive = false;
  bool isolated = true;
  bool best_effort = false;      // No share of it is enforced.
  std::optional<Policy> policy;  // It stays under this one; none: under any.
  std::string application;       // Whose replicas are kept apart; empty: nobody's.
};

struct Answer {
  std::optional<Placement> placement;
  std::vector<Verdict> verdicts;  // One for each device, in the snapshot's order.
  std::string summary;  // Where there is no placement: why, in one sentence, and what would make it fit.
};

// For a validated request and at most max_node_devices devices. With the residents told, the summary
// also names a move that would make room; nobody is moved. `links`: how the devices are connected, where it
// is known.
Answer place(std::span<const DeviceSnapshot> devices, const Request&, Strategy,
             std::span<const PlacedSlice> = {}, const Topology* links = nullptr);

// Which moves would leave `wanted` more devices of the machine empty (place/consolidation.h); nobody is
// moved.
struct Plan {
  struct Move {
    size_t who;   // Position in `residents`. Of several devices: a row for each that is exchanged.
    size_t from;  // Positions in `devices`.
    size_t to;
  };
  std::vector<Move> moves;  // In an order in which each has room when it is made.
  std::vector<size_t> emptied;
  Bytes moved;
};
Plan plan(std::span<const DeviceSnapshot> devices, Strategy, std::span<const PlacedSlice>, unsigned wanted,
          const Topology* links = nullptr);

// "the fullest device that fits, of the fullest node": how a policy chooses.
std::string_view choice(Strategy);

}  // namespace carve::place
