// kind: Pool. A node pool: nodes that share labels and taints (workload/pool.h).
#pragma once

#include "core/pool_words.h"
#include "core/word.h"
#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct PoolTaint {
  std::string key;           // As in Kubernetes.
  std::string value;         // As in Kubernetes.
  Word<TaintEffect> effect;  // "NoSchedule", "PreferNoSchedule", "NoExecute"
};

struct PoolSpec {
  Word<PoolType> type = PoolType::eas;        // "eas", "lingjun", "public", "ecs", "vci"
  std::map<std::string, std::string> labels;  // Labels of a new node.
  std::vector<PoolTaint> taints;              // Taints of a new node.
  bool label_sync = false;                    // Nodes follow later changes of labels and taints.
  bool sharing = true;                        // Slices may be created on its nodes.
  Word<BestEffortRule> best_effort = BestEffortRule::allow;  // "allow" or "refuse" slices without a share.
};

// A label of the pool that a node lacks, or has with another value.
struct PoolDrift {
  std::string node;        // Name of the node.
  std::string label;       // Key of the label.
  std::string pool_value;  // The pool's value.
  std::string node_value;  // Empty if the node does not have the label.
};

struct SlicingCheckStatus {
  std::string name;     // "resource-type", "gpu-count", "instance-state", or "sharing" if it is not enabled
  bool ok = false;      // True if the check passes.
  std::string message;  // Empty if the check is ok.
};

// GET /v1/pools/NAME/slicing
struct Slicing {
  bool available = false;                  // True if every check is ok.
  std::vector<SlicingCheckStatus> checks;  // In order, up to the first that fails.
  std::string failed;                      // Name of the failing check; empty if none fails.
  std::string
      eas_problem;  // Why PAI-EAS documents may not be sliced there; empty if they may when it is available.
};

struct PoolStatus {
  uint32_t nodes = 0;              // Number of its nodes.
  uint32_t gpus = 0;               // Number of devices of its nodes.
  uint32_t running_gpu_nodes = 0;  // Running nodes with a device.
  std::vector<PoolDrift> drift;    // Nodes whose labels differ from the pool's.
  Slicing slicing;                 // Whether its devices can be sliced.
};

struct Pool {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  PoolSpec spec;
  PoolStatus status;
};

struct PoolList {
  std::vector<Pool> items;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::PoolSpec)
CARVE_DECLARE_DOCUMENT(objects::Slicing)
CARVE_DECLARE_DOCUMENT(objects::PoolStatus)
CARVE_DECLARE_DOCUMENT(objects::Pool)
