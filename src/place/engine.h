// Where a request goes in a fleet: hard rules, a policy's scores, and an index that remembers them.
//
// For each kind of request the engine keeps one byte per node: its score, 0 where the node cannot serve, and
// one byte per 64 nodes: their highest. When a kind is asked for, the nodes that changed since it was asked
// last are scored again (the fleet's journal names them, each once), and the answer is the first node with
// the highest byte. A decision costs the nodes that changed since, about 60 ns each under fgd, and a look at
// one byte per 64 nodes; memory is a byte per node and kind (two where there are guards). So much is kept for
// as many kinds as make the whole 1 KiB a node, at least for 160; beyond them the kind asked for most seldom
// gives up its bytes, and is scored from the beginning when it comes again. Nothing is allocated once a kind
// is known.
#pragma once

#include <unordered_map>

#include "place/scoring.h"

namespace carve::place {

using RequestClass = uint32_t;
using Application = uint32_t;
inline constexpr Application no_application = 0;

class Engine {
 public:
  explicit Engine(Strategy strategy) : scoring_(scoring(strategy)) {}

  Fleet& fleet() { return fleet_; }  // Add nodes, change them: the index follows.
  const Fleet& fleet() const { return fleet_; }

  RequestClass request_class(const RequestShape&);
  const RequestShape& shape(RequestClass k) const { return classes_[k].shape; }
  size_t classes() const { return classes_.size(); }

  // What a request belongs to, where its replicas are to be kept apart; "" belongs to nothing.
  Application application(std::string_view name);

  // Where this request would go now; nothing where no node can serve. Of its application's replicas it goes
  // apart: under `spread` to the node, and there to the device, with the fewest of them, before all else;
  // under the others wherever that makes no difference to the policy.
  std::optional<Assignment> find(RequestClass, Application = no_application);

  // find(), and takes it.
  std::optional<Assignment> place(RequestClass, Application = no_application);
  void release(RequestClass, const Assignment&, Application = no_application);

  // What stands already when the engine is made, or was decided elsewhere.
  void take(RequestClass, const Assignment&, Application = no_application);

  // A replica of this application is among what devices were added with: nothing is taken for it.
  void add_placed(Application, const Assignment&);

  // What is to come, as somebody knows it. Without it a policy that needs one learns from the arrivals.
  void set_workload_model(const WorkloadModel&);
  bool uses_workload_model() const { return scoring_->uses_workload_model(); }
  bool learns_workload_model() const { return scoring_->learns_workload_model(); }

  // What a node's index takes now, in bytes.
  size_t bytes_per_node() const;

 private:
  struct Row {
    RequestShape shape;
    std::vector<uint8_t> score;       // By node.
    std::vector<uint8_t> block;       // The highest of each 64 nodes.
    std::vector<uint8_t> slots_lost;  // By node, where there are guards: slot types that lose a slot there.
    uint64_t seen = 0;                // The fleet's changes up to here are in.
    uint64_t epoch = 0;
    uint64_t asked = 0;  // How often; fades.
  };
  struct Replica {
    uint32_t node;
    DeviceSet devices;
  };
  struct Hash {
    size_t operator()(const RequestShape&) const;
  };

  void look_around();
  void learn(const RequestShape&);
  void adopt(const WorkloadModel&);
  std::optional<uint32_t> best(const Row&, const ReservedCapacity&, const Guards*) const;
  template <class Key, class Replicas>
  std::optional<uint32_t> first_of(const Row&, const ReservedCapacity&, const Guards*, Key, Replicas) const;
  uint32_t apart(const Row&, const ReservedCapacity&, const Guards*, uint32_t found, Application);
  Score scored(uint32_t n, const RequestShape&, DeviceSet fit, Application) const;
  size_t most_rows() const;
  void make_room(RequestClass);
  void update(Row&);
  void rescore(Row&, uint32_t n);

  Fleet fleet_;
  std::unique_ptr<Scoring> scoring_;
  std::vector<Row> classes_;
  std::vector<RequestClass> scored_;  // Those whose rows have scores.
  std::unordered_map<RequestShape, RequestClass, Hash> known_;
  uint64_t finds_ = 0;
  uint64_t around_ = 0;  // The fleet's changes up to here were told to the policy.
  std::unordered_map<std::string, Application> applications_;
  std::vector<std::vector<Replica>> replicas_ = std::vector<std::vector<Replica>>(1);  // By application.
  std::vector<uint8_t> count_;  // By node, of one application's replicas; all 0 between decisions.
  ArrivalCounts arrivals_;
  uint64_t learned_ = 0;  // Arrivals counted when the workload was learned last.
  uint64_t epoch_ = 1;    // Scores of an older one are void.
};

}  // namespace carve::place
