// Chooses the nodes on which a slice is requested, and where it would be granted, from the agents' last
// answers. The agents decide: other slices may come between a forecast and a request, so a forecast reserves
// nothing.
//
// It holds a snapshot of the nodes' devices in the form of fleet/, which Kubernetes' coordinator shares. The
// engine chooses the node, and the node's own strategy chooses the devices, as the node's agent would. Pure:
// objects go in, values come out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"
#include "controller/objects/service_form.h"
#include "fleet/device_use.h"
#include "fleet/mode_rule.h"
#include "place/engine.h"
#include "wire/api/slice.h"
#include "workload/pool.h"

namespace carve::controller {

// Returns the isolation that the node's mode gives to a request that names none; no value if the agent
// chooses, by whether the request has a share.
std::optional<Isolation> isolation_of(const Object& node);

// Returns whether the slice would run best-effort: it has neither whole devices nor a share.
bool is_best_effort(const Amounts&);

// Returns the message with which a pool rejects a best-effort slice.
std::string best_effort_problem(const std::string& pool);

struct ForecastPlace {
  std::string node;
  std::vector<uint32_t> devices;  // Indexes, in the order of the request's parts.
  std::vector<Bytes> memory;      // Memory on each; a request in units counts this node's units.
};

// A slice that lives on a node now.
struct LivingSlice {
  struct Part {
    std::string device;  // UUID.
    uint64_t memory_bytes = 0;
    uint32_t share_bp = 0;
  };
  std::vector<Part> parts;
  bool is_exclusive = false;
  std::optional<Isolation> isolation = {};  // If no value, as much as its share allows.
  Policy policy = Policy::fixed_share;
};

// Returns the observed slices, by name.
template <class Observed>
std::vector<LivingSlice> living_slices(const std::map<std::string, Observed>& slices) {
  std::vector<LivingSlice> out;
  for (const auto& [name, slice] : slices) {
    LivingSlice& living = out.emplace_back();
    living.is_exclusive = slice.is_exclusive;
    living.isolation = slice.isolation;
    living.policy = parse<Policy>(slice.policy).value_or(Policy::fixed_share);
    for (const auto& part : slice.parts)
      living.parts.push_back({part.device, part.memory_bytes, part.share_bp});
  }
  return out;
}

// Returns why a slice fits on no node even if all of them are empty, or nothing if it fits or no node is
// known. The message begins with the field of the slice's memory.
Outcome<void> check_ever_fits(const ObjectRegistry&, const NodeChoice&, const Amounts&,
                              const workload::HostResources&, const std::string& memory_text);

// Total capacity of a pool's nodes.
struct PoolCapacity {
  uint64_t memory_bytes = 0;  // Usable.
  uint64_t compute_bp = 0;
  uint64_t largest_device_bytes = 0;  // Usable.
  uint64_t context_bytes = 0;         // A device's largest context; 0 if slices do not pay for contexts.

  friend bool operator==(const PoolCapacity&, const PoolCapacity&) = default;
};

class SliceForecast {
 public:
  explicit SliceForecast(const ObjectRegistry&);

  // Counts the host resources that the replicas of all workloads request, as the service reconciler does.
  void count_replicas(const ObjectRegistry&);

  // Sets the free capacity of the node's devices to the remainder after these slices, which are newer than
  // the registry's.
  void replace_slices(const std::string& node, const std::vector<LivingSlice>&);

  // Sets the host resources that the replicas on the node request.
  void set_host_requested(const std::string& node, const workload::HostResources&);

  // Returns the nodes as if all of them were running, healthy and empty, whatever their modes and taints. A
  // request that place() rejects there with insufficient_capacity never fits on the current nodes. Nodes with
  // unknown devices are left out.
  SliceForecast emptied() const;

  // Returns the capacity of the pool's nodes; an empty name means all nodes.
  PoolCapacity capacity(const std::string& pool) const;

  // Returns the place of a slice on these devices, given as UUIDs separated by blanks.
  std::optional<ForecastPlace> place_of(const std::string& node, const std::string& devices);

  // Takes the slice at this place, or returns false and takes nothing. release_at() is the inverse.
  bool take_at(const ForecastPlace&, const Amounts&);
  void release_at(const ForecastPlace&, const Amounts&);

  // Returns the candidate nodes for a slice, in the order to try them. A candidate is running, accepts
  // new slices, has no taint that repels this one, and has the mode and pool that the request names. Nodes
  // with room come first: the engine's choice, then the others by their scores. Nodes with a taint that
  // avoids the slice come last. Fails with failed_precondition if there is no such pool or no node may take
  // the slice, and with unavailable if no node can be reached now.
  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const Amounts&);

  // Returns where a slice would be granted for a program that requests `host` of the node's machine, and
  // counts both for the next one. Fails like nodes_to_ask(), and with insufficient_capacity if it fits on no
  // node: the message has each node's shortfall.
  Outcome<ForecastPlace> place(const NodeChoice&, const Amounts&, const workload::HostResources& host = {});

 private:
  struct Node {
    fleet::GpuNode gpu;  // Without devices if placement cannot use the node.
    std::vector<fleet::DeviceUse> uses;
    std::string pool;
    bool is_open = false;  // It runs and rejects no slice.
    std::set<workload::Taint> taints;
    bool pool_refuses_best_effort = false;
    workload::HostResources host_requested;  // By its replicas.
    std::optional<uint32_t> number = {};     // In the engine's fleet. No value if it has no device.
  };
  // The request on the nodes of one kind.
  struct KindRequest {
    Request request;
    place::RequestShape shape;
  };
  using KindRequests =
      std::map<unsigned, Result<KindRequest, fleet::Refusal>>;  // Keyed by the kind's number.
  struct Candidate {
    Node* node;
    const Result<KindRequest, fleet::Refusal>* request;
    bool is_avoided;  // A taint avoids the slice.
  };
  // The engine over all nodes. It is built when first needed, and a copy of a forecast builds its own.
  struct OwnEngine {
    std::unique_ptr<place::Engine> engine;

    OwnEngine() = default;
    OwnEngine(const OwnEngine&) {}
    OwnEngine(OwnEngine&&) = default;
    OwnEngine& operator=(const OwnEngine&) {
      engine.reset();
      return *this;
    }
    OwnEngine& operator=(OwnEngine&&) = default;
    ~OwnEngine() = default;
  };

  static Node node_of(const Object&);
  using Tolerations = std::vector<workload::Toleration>;
  static std::string objection(const Node&, const Tolerations&, const Amounts&,
                               const Result<KindRequest, fleet::Refusal>&);
  static std::optional<Request> held_request(const Node&, const Amounts&);
  Node* find(const std::string& name);
  place::Engine& engine();
  void update_engine(const Node&);
  KindRequests requests_on_kinds(const Amounts&, const workload::HostResources&);
  Outcome<std::vector<Candidate>> candidates(const NodeChoice&, const Amounts&, const KindRequests&);
  std::vector<size_t> order(const std::vector<Candidate>&);
  fleet::Refusal refusal_on(const Candidate&);

  std::map<std::string, bool> pools_;  // By name: whether the pool rejects slices without a share.
  std::vector<Node> nodes_;
  OwnEngine engine_;
};

}  // namespace carve::controller
