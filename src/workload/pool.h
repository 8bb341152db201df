// A node pool: nodes that share labels and taints. actions() compares the labels and taints of the pool with
// those of its nodes and returns the controller's changes.
//
// * A new node gets all labels and taints of its pool. A node that has them follows later changes only if the
//   pool synchronises its labels. Labels that only the node has stay unchanged.
// * Four labels are system labels. Their values cannot be edited on a node; the pool's synchronisation may
//   overwrite them.
// * GPU slicing is available if the pool's type, its number of GPUs and the state of its nodes allow it. The
//   three conditions are checked in this order, and the first that fails is reported.
//
// Keys and values are Carve's (carve.dev/...); the dialects translate synonyms. Times are those of restart.h.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/node_phase.h"
#include "core/pool_words.h"
#include "core/request.h"
#include "workload/restart.h"

namespace carve::workload {

inline constexpr Ns node_silence_ns = 10 * second_ns;  // A node without a response for this long is stopped.
inline constexpr Ns default_expected_start_ns = 600 * second_ns;

inline constexpr std::string_view compute_policy_label = "carve.dev/compute-policy";
inline constexpr std::string_view mode_label = "carve.dev/mode";
inline constexpr std::string_view placement_label = "carve.dev/placement";
inline constexpr std::string_view memory_unit_label = "carve.dev/memory-unit";

// Returns whether the key is one of these four.
bool is_system_label(std::string_view key);

using Labels = std::map<std::string, std::string, std::less<>>;

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::no_schedule;

  friend auto operator<=>(const Taint&, const Taint&) = default;
};

// A taint that a service tolerates. Without a key it tolerates every key, and without an effect every effect.
struct Toleration {
  std::string key;
  std::optional<std::string> value;  // Absent means every value.
  std::optional<TaintEffect> effect;
};

bool tolerates(const Toleration&, const Taint&);

// The effect of a node's taints on a service. If `repels` is set, the service is never placed there; if
// `avoids` is set, only if no other node is available. `repels` is the first taint that is not tolerated.
struct TaintResult {
  const Taint* repels = nullptr;
  bool avoids = false;
};
TaintResult effect_of(const std::set<Taint>&, std::span<const Toleration>);

struct NodePool {
  std::string name;
  PoolType type = PoolType::eas;
  Labels labels;
  std::set<Taint> taints;
  bool synchronises_labels = false;
  bool is_sharing_enabled = true;
};

// Returns an error (invalid_argument) if no node may have a label with this key and value.
Outcome<void> check_label(std::string_view key, std::string_view value);

// Returns the pool, or the first rule that it violates (invalid_argument): its name, a label that is too
// long, or a system label with an invalid value.
Outcome<NodePool> validated(NodePool);

// A node that belongs to the pool.
struct PoolNode {
  std::string name;
  Labels labels;
  std::set<Taint> taints;
  bool is_initialised = false;  // The node received the pool's labels when it was new.
  unsigned gpus = 0;
  bool is_stopped = false;  // By `carve node stop`.
  bool is_ready = false;    // Devices listed, contexts measured, ledger adopted.
  Ns started_at = 0;
  Ns answered_at = 0;  // Time of the agent's last response.
};

NodePhase state_of(const PoolNode&, Ns now);

// Returns the expected time until a starting node is running, at least 0.
Ns ready_in(const PoolNode&, Ns now, Ns expected_start = default_expected_start_ns);

struct PoolAction {
  enum class Kind : uint8_t {
    set_label,
    set_taint,
    remove_taint,  // A taint that the pool no longer has, if the pool synchronises its labels.
    initialise,    // Marks the node as having the pool's labels and taints.
  };
  Kind kind;
  std::string node;
  std::string key = {};    // Label key.
  std::string value = {};  // Label value.
  Taint taint = {};

  friend bool operator==(const PoolAction&, const PoolAction&) = default;
};

// Returns the controller's next actions. For each node, these are the labels, the taints, and then the mark.
// The decision does not depend on the time.
std::vector<PoolAction> actions(const NodePool&, std::span<const PoolNode>);

// A label of the pool that a node does not have or has with another value.
struct LabelDrift {
  std::string node;
  std::string label;
  std::string pool_value;
  std::string node_value;  // Empty if the node does not have the label.

  friend bool operator==(const LabelDrift&, const LabelDrift&) = default;
};
std::vector<LabelDrift> drift(const NodePool&, std::span<const PoolNode>);

// Returns an error if a user may not set the node's label to this value, because it is a system label that
// the node has with another value (failed_precondition) or whose value is invalid (invalid_argument).
Outcome<void> check_edit(const PoolNode&, std::string_view key, std::string_view value);

struct SlicingCheck {
  std::string_view name;  // "resource-type", "gpu-count", "instance-state"; "sharing" if it is not enabled
  bool is_ok = false;
  std::string message;  // Empty if the check is ok.
};

// Returns the checks in order, up to the first that fails.
std::vector<SlicingCheck> slicing_checks(const NodePool&, std::span<const PoolNode>, Ns now);

// Returns why PAI-EAS documents, unlike other documents, may not have slices in a pool of this type, or an
// empty string if they may. In PAI-EAS only an EAS resource group and a Lingjun resource quota have GPU
// slicing.
std::string eas_problem(const NodePool&);

// Returns an error (failed_precondition) if no slice may be created in the pool, because sharing is not
// enabled or a slicing check fails.
Outcome<void> may_slice(const NodePool&, std::span<const PoolNode>, Ns now);

}  // namespace carve::workload
