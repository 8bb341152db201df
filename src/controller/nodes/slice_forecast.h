// On which nodes a slice is requested, and where it would be granted, by what the agents answered last. The
// agents decide: between a forecast and a request other slices may come, so a forecast reserves nothing.
//
// It holds a snapshot of the nodes' devices, on which it places slices as the agents do (place/place.h).
// Pure: objects go in, values come out.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"
#include "controller/objects/service_form.h"
#include "place/place.h"
#include "wire/api/slice.h"
#include "workload/pool.h"

namespace carve::controller {

// Returns the isolation that the node's mode gives to a request that names none; no value: the agent's
// choice, by whether the request has a share.
std::optional<Isolation> isolation_of(const Object& node);

// Returns whether the slice would get the compute that others leave: it has neither whole devices nor a
// share.
bool is_best_effort(const api::SliceRequest&);

// Returns the sentence with which a pool refuses such a slice.
std::string best_effort_problem(const std::string& pool);

struct ForecastPlace {
  std::string node;
  std::vector<uint32_t> devices;  // Indexes.
};

// A slice that lives on a node now.
struct LivingSlice {
  std::vector<std::string> devices;  // UUIDs.
  uint64_t memory_bytes = 0;         // Of one part.
  uint32_t share_bp = 0;             // Of one part.
  bool is_exclusive = false;
};

// What all nodes of a pool have in all.
struct PoolCapacity {
  uint64_t memory_bytes = 0;  // Usable.
  uint64_t compute_bp = 0;
  uint64_t largest_device_bytes = 0;  // Usable.
  uint64_t context_bytes = 0;         // The largest context of a device; 0: contexts are not in slices.
};

class SliceForecast {
 public:
  explicit SliceForecast(const ObjectRegistry&);

  // Counts what the replicas of all workloads request of their nodes' machines, as the service loop does.
  void count_replicas(const ObjectRegistry&);

  // Replaces what the node's devices have free by what these slices leave. They are newer than what the
  // registry knows.
  void replace_slices(const std::string& node, const std::vector<LivingSlice>&);

  // Returns what the nodes of the pool have; an empty name means all nodes.
  PoolCapacity capacity(const std::string& pool) const;

  // Returns the place of a slice on these devices: UUIDs, separated by blanks.
  std::optional<ForecastPlace> place_of(const std::string& node, const std::string& devices) const;

  // Takes the slice at this place, or returns false and takes nothing. Releases it.
  bool take_at(const ForecastPlace&, const api::SliceRequest&);
  void release_at(const ForecastPlace&, const api::SliceRequest&);

  // Returns the nodes that are asked for a slice, the first one first: those that run, refuse no slice, have
  // no taint that repels it, and whose mode and pool give what the request names. Nodes that have room are
  // asked before the others, nodes that pack (binpack) before those that spread; among the first the one with
  // the least free memory, among the others the one with the most. Fails with failed_precondition if there is
  // no such pool or no node may take it, and with unavailable if no node can be asked now.
  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const api::SliceRequest&) const;

  // Returns where a slice would be granted for a program that requests `host` of the node's machine, and
  // counts both for the next one. Fails as nodes_to_ask() does, and with insufficient_capacity if it fits on
  // no node: the sentence has what each node lacks.
  Outcome<ForecastPlace> place(const NodeChoice&, const api::SliceRequest&,
                               const workload::HostResources& host = {});

 private:
  struct Node {
    std::string name, pool, mode;
    bool is_open = false;  // It runs and refuses no slice.
    bool spreads = false, has_policy_per_slice = false, admits_best_effort = true;
    std::optional<Isolation> isolation;
    std::set<workload::Taint> taints;
    bool pool_refuses_best_effort = false;
    MemoryUnit unit = MemoryUnit::gib;
    std::vector<place::DeviceSnapshot> devices;
    workload::HostResources host, host_requested;  // Of the machine; by the replicas on it.
  };

  static Node node_of(const Object&);
  using Tolerations = std::vector<workload::Toleration>;
  static std::string objection(const Node&, const Tolerations&, const api::SliceRequest&);
  static Outcome<place::Answer> answer_of(const Node&, const api::SliceRequest&);
  static void take(Node&, const api::SliceRequest&, const place::Placement&);
  Outcome<std::vector<const Node*>> candidates(const NodeChoice&, const api::SliceRequest&) const;

  std::map<std::string, bool> pools_;  // By name: whether it refuses slices without a share.
  std::vector<Node> nodes_;
};

}  // namespace carve::controller
