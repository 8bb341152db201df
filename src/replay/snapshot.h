// A fleet at a moment: its nodes, their devices and how these are connected, and who holds what of them. One
// JSON document (docs/placement.md), written by whoever knows; read here for `--explain` and `--consolidate`.
//
//   {"nodes": [{"name": "n1", "model": "A100", "cpu_milli": 96000, "host_memory_bytes": 412316860416,
//               "devices": [{"memory_bytes": 85899345920}, {"memory_bytes": 85899345920, "trouble": "lost"}],
//               "links": ["X NV12", "NV12 X"]}],
//    "held":  [{"name": "a", "node": "n1", "devices": [0], "memory_bytes": 4294967296, "share_bp": 2000,
//               "cpu_milli": 4000, "host_memory_bytes": 0, "application": "web", "models": ["A100"]}]}
//
// What is read is sound: no more is held than there is, and nobody stands where no rule would have let him.
// Everything else is a sentence with file, line and field.
#pragma once

#include <string>
#include <vector>

#include "place/consolidation.h"
#include "place/engine.h"

namespace carve::replay {

struct Snapshot {
  struct Node {
    std::string name;
    std::string model;
    place::NodeState state;  // As if nothing were held; its model is not set.
    std::vector<place::DeviceState> devices;
    std::optional<place::Topology> links;
  };
  struct PlacedSlice {
    std::string name;
    std::string application;
    std::vector<std::string> models;  // Where it may stand; empty: where the model is that of its node.
    place::RequestShape shape;        // Its models are not set.
    place::Assignment assignment;
  };
  std::vector<Node> nodes;
  std::vector<PlacedSlice> held;
};

Outcome<Snapshot> parse_snapshot(std::string_view text, const std::string& name);
Outcome<Snapshot> read_snapshot(const std::string& path);

// The engine over it, with everybody in his place. A strategy that looks at what is to come is told what is
// there.
struct Scene {
  place::Engine engine;
  std::vector<place::PlacedRequest> standing;  // In the order of Snapshot::held.

  Scene(const Snapshot&, Strategy);
};

}  // namespace carve::replay
