// Reads a snapshot of a fleet: its nodes, their devices and links, and the slices on them. It is one JSON
// document (docs/placement.md) for `--explain` and `--consolidate`.
//
//   {"nodes": [{"name": "n1", "model": "A100", "cpu_milli": 96000, "host_memory_bytes": 412316860416,
//               "mode": "memory", "policy": "fixed-share",
//               "devices": [{"uuid": "GPU-1a2b...", "memory_bytes": 85899345920},
//                           {"memory_bytes": 85899345920, "trouble": "lost"}],
//               "links": ["X NV12", "NV12 X"]}],
//    "held":  [{"name": "a", "node": "n1", "devices": [0], "memory_bytes": 4294967296, "share_bp": 2000,
//               "cpu_milli": 4000, "host_memory_bytes": 0, "application": "web", "models": ["A100"]}]}
//
// A snapshot that could be read is valid: slices hold no more than a device has, and every slice satisfies
// the hard rules. Any other document is rejected with an error that has the file, line and field.
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
    place::NodeState state;  // As if no slice were placed. Its model is not set.
    std::vector<place::DeviceState> devices;
    std::vector<std::string> uuids;  // One for each device. Empty if the document has none.
    bool has_mode = false;           // Its slices may only be moved to nodes of the same mode.
    std::optional<place::Topology> links;
  };
  struct PlacedSlice {
    std::string name;
    std::string application;
    // The allowed models. Empty means the model of its node.
    std::vector<std::string> models;
    place::RequestShape shape;  // The shape without models.
    place::Assignment assignment;
  };
  std::vector<Node> nodes;
  std::vector<PlacedSlice> held;
};

Outcome<Snapshot> parse_snapshot(std::string_view text, const std::string& name);
Outcome<Snapshot> read_snapshot(const std::string& path);

// The engine of a snapshot, with all its slices. A strategy with a workload model gets the placed slices as
// the model.
struct Scene {
  place::Engine engine;
  std::vector<place::PlacedRequest> standing;  // In the order of Snapshot::held.

  Scene(const Snapshot&, Strategy);
};

}  // namespace carve::replay
