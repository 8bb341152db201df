// Where a request goes in a fleet: hard rules, a policy's scores, and an index that remembers them.
//
// For each kind of request the engine keeps one byte per node: its score, 0 where the node cannot serve, and
// one byte per 64 nodes: their highest. When a kind is asked for, the nodes that changed since it was asked
// last are scored again (the fleet's journal names them, each once), and the answer is the first node with
// the highest byte. A decision costs the nodes that changed since, about 60 ns each under fgd, and a look at
// one byte per 64 nodes; memory is a byte per node and kind. Nothing is allocated once a kind is known.
#pragma once

#include <unordered_map>

#include "place/scoring.h"

namespace carve::place {

using Kind = uint32_t;

class Engine {
 public:
  explicit Engine(Strategy strategy) : scoring_(scoring(strategy)) {}

  Fleet& fleet() { return fleet_; }  // Add nodes, change them: the index follows.
  const Fleet& fleet() const { return fleet_; }

  Kind kind(const Ask&);
  const Ask& ask(Kind k) const { return kinds_[k].ask; }
  size_t kinds() const { return kinds_.size(); }

  // Where this request would go now; nothing where no node can serve.
  std::optional<Spot> find(Kind);

  // find(), and takes it.
  std::optional<Spot> place(Kind);
  void release(Kind, const Spot&);

  // What stands already when the engine is made, or was decided elsewhere.
  void take(Kind, const Spot&);

  // What is to come, as somebody knows it. Without it a policy that needs one learns from the arrivals.
  void expect(const Workload&);
  bool expects() const { return scoring_->expects(); }
  bool learns() const { return scoring_->learns(); }

  // What a node's index takes now, in bytes.
  size_t bytes_per_node() const;

 private:
  struct Row {
    Ask ask;
    std::vector<uint8_t> score;  // By node.
    std::vector<uint8_t> block;  // The highest of each 64 nodes.
    std::vector<uint8_t> harm;   // By node, where there are guards: slot types that lose a slot there.
    uint64_t seen = 0;           // The fleet's changes up to here are in.
    uint64_t epoch = 0;
  };
  struct Hash {
    size_t operator()(const Ask&) const;
  };

  void look_around();
  void learn(const Ask&);
  void adopt(const Workload&);
  std::optional<uint32_t> best(const Row&, const Bar&, const Guards*) const;
  void update(Row&);
  void rescore(Row&, uint32_t n);

  Fleet fleet_;
  std::unique_ptr<Scoring> scoring_;
  std::vector<Row> kinds_;
  std::unordered_map<Ask, Kind, Hash> known_;
  uint64_t around_ = 0;  // The fleet's changes up to here were told to the policy.
  Census census_;
  uint64_t learned_ = 0;  // Arrivals counted when the workload was learned last.
  uint64_t epoch_ = 1;    // Scores of an older one are void.
};

}  // namespace carve::place
