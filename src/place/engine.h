// The placement engine: hard rules, a strategy's scores, and an index that stores the scores.
//
// For each request class, the engine keeps one byte per node, which is its score (0 if the node cannot serve
// the class), and one byte per 64 nodes, which is their highest score. A decision first rescores the nodes
// that have changed since the class's last decision; the fleet's journal lists each of them once. The result
// is the first node with the highest score. A decision takes about 60 ns per changed node under fgd, and
// reads one byte per 64 nodes. The index takes one byte per node and class, or two with guards. It is kept
// for as many classes as fit in 1 KiB per node, and for at least 160. When there are more, the class that is
// requested least often loses its scores, and is scored from the beginning when it is requested again. No
// memory is allocated for a known class.
#pragma once

#include <map>
#include <unordered_map>

#include "place/scoring.h"

namespace carve::place {

using RequestClass = uint32_t;
using Application = uint32_t;
inline constexpr Application no_application = 0;

class Engine {
 public:
  explicit Engine(Strategy strategy) : scoring_(scoring(strategy)) {}

  Fleet& fleet() { return fleet_; }  // Nodes may be added and changed; the index is updated.
  const Fleet& fleet() const { return fleet_; }

  RequestClass request_class(const RequestShape&);
  const RequestShape& shape(RequestClass k) const { return classes_[k].shape; }
  size_t classes() const { return classes_.size(); }

  // Returns the application of a request, whose replicas are kept apart; "" means that there is none.
  Application application(std::string_view name);

  // Returns where this request would go now, or no value if no node can serve it. The request is kept apart
  // from its application's replicas. Under `spread` it goes to the node, and there to the device, with the
  // fewest replicas; the score is only used among equal ones. Under the other strategies, replicas only
  // decide between equal scores.
  std::optional<Assignment> find(RequestClass, Application = no_application);

  // Returns the devices of node n that this request would take there now, or no value if the node cannot
  // serve it. Optionally, they are chosen by a strategy other than the engine's.
  std::optional<Assignment> find_on(RequestClass, uint32_t n, Application = no_application,
                                    std::optional<Strategy> = {});

  // Returns each node's score by the engine's strategy, indexed by the node's number; 0 if the node cannot
  // serve the class. The span is valid until the next call.
  std::span<const uint8_t> scores(RequestClass);

  // Calls find() and takes the result.
  std::optional<Assignment> place(RequestClass, Application = no_application);
  void release(RequestClass, const Assignment&, Application = no_application);

  // Takes an assignment that was made before the engine existed, or that was decided elsewhere.
  void take(RequestClass, const Assignment&, Application = no_application);

  // Records a replica of this application. Its resources are already included in the devices' states, so
  // nothing is taken.
  void add_replica(Application, const Assignment&);

  // Adds or removes a placed request, if the caller itself updates the devices' states (Fleet::set_device).
  void add_placed(RequestClass, const Assignment&, Application = no_application);
  void remove_placed(RequestClass, const Assignment&, Application = no_application);

  // Counts an arrival that place() does not see, for strategies that derive the expected requests from
  // arrivals.
  void count_arrival(const RequestShape&);

  // Sets the expected requests. If this is not called, a strategy that needs them derives them from the
  // arrivals.
  void set_workload_model(const WorkloadModel&);
  bool uses_workload_model() const { return scoring_->uses_workload_model(); }
  bool learns_workload_model() const { return scoring_->learns_workload_model(); }

  // Returns the bytes per node that the engine uses now.
  size_t bytes_per_node() const;

 private:
  struct Row {
    RequestShape shape;
    std::vector<uint8_t> score;  // Indexed by node.
    std::vector<uint8_t> block;  // The highest score of each block of 64 nodes.
    // By node, if there are guards: the slot types that would lose a slot there.
    std::vector<uint8_t> slots_lost;
    uint64_t seen = 0;  // The last change of the fleet that is included in the scores.
    uint64_t epoch = 0;
    uint64_t asked = 0;  // Number of requests, with decay.
  };
  struct Replica {
    uint32_t node;
    DeviceSet devices;
  };
  struct Hash {
    size_t operator()(const RequestShape&) const;
  };

  void look_around();
  void adopt(const WorkloadModel&);
  std::optional<uint32_t> best(const Row&, const ReservedCapacity&, const Guards*) const;
  template <class Key, class Replicas>
  std::optional<uint32_t> first_of(const Row&, const ReservedCapacity&, const Guards*, Key, Replicas) const;
  uint32_t apart(const Row&, const ReservedCapacity&, const Guards*, uint32_t found, Application);
  Score scored(const Scoring&, uint32_t n, const RequestShape&, const FittingDevices&, Application) const;
  std::optional<Assignment> assigned(const Scoring&, uint32_t n, const RequestShape&, Application) const;
  size_t most_rows() const;
  void make_room(RequestClass);
  void update(Row&);
  void rescore(Row&, uint32_t n);

  Fleet fleet_;
  std::unique_ptr<Scoring> scoring_;
  std::map<Strategy, std::unique_ptr<Scoring>> other_scorings_;  // For single decisions.
  std::vector<Row> classes_;
  std::vector<RequestClass> scored_;  // Classes whose rows have scores.
  std::unordered_map<RequestShape, RequestClass, Hash> known_;
  uint64_t finds_ = 0;
  // The last fleet change that the strategy was notified of.
  uint64_t around_ = 0;
  std::unordered_map<std::string, Application> applications_;
  std::vector<std::vector<Replica>> replicas_ = std::vector<std::vector<Replica>>(1);  // By application.
  std::vector<uint8_t> count_;  // Replicas of one application by node; all 0 between decisions.
  ArrivalCounts arrivals_;
  uint64_t learned_ = 0;  // Arrivals counted at the last update of the workload model.
  uint64_t epoch_ = 1;    // Scores of an older epoch are invalid.
};

}  // namespace carve::place
