// The initial state of every replay: the cluster's nodes in the order of the seed, the engine, and a request
// class per pod.
#pragma once

#include <array>
#include <string_view>

#include "place/engine.h"
#include "replay/cluster_trace.h"
#include "replay/random.h"

namespace carve::replay {

// The purpose of a stream of random numbers (replay/random.h).
enum Purpose : uint64_t {
  pods_order = 1,
  clones = 2,
  nodes_order = 3,
  gaps = 4,
  lifetimes = 5,
  who_comes = 6
};

// Lost pods are counted by their number of devices: none, a part of one, one, 2, 3-4, 5 and more.
inline constexpr std::array<std::string_view, 6> class_names = {"cpu", "part", "1", "2", "4", "8"};
unsigned class_of(const Pod&);

struct Effort {
  uint64_t decisions = 0;
  double seconds = 0;  // Time spent in the decisions and the surrounding loop.
  uint64_t bytes_per_node = 0;
  uint64_t classes = 0;
};

struct Setup {
  place::Engine engine;
  std::vector<place::RequestClass> classes;  // By position in the trace.
  std::vector<std::string_view> names;  // Names of the nodes in the engine's order, owned by the cluster.

  // With `known`, a strategy with a workload model gets the trace's requests, even if it could derive them
  // from the arrivals.
  Setup(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed);
};

}  // namespace carve::replay
