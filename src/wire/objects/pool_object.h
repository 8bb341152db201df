// kind: Pool. A node pool: nodes that share labels and taints (workload/pool.h).
#pragma once

#include "wire/objects/object.h"

namespace carve::objects {

struct PoolTaint {
  std::string key;
  std::string value;
  std::string effect;
};

struct PoolSpec {
  std::string type = "eas";                   // "eas", "lingjun", "public", "ecs", "vci"
  std::map<std::string, std::string> labels;  // A new node gets them.
  std::vector<PoolTaint> taints;
  bool label_sync = false;            // Nodes follow later changes of labels and taints.
  bool sharing = true;                // Slices may be created on its nodes.
  std::string best_effort = "allow";  // "allow" or "refuse": slices without a share.
};

// A label of the pool that a node has not, or has with another value.
struct PoolDrift {
  std::string node;
  std::string label;
  std::string pool_value;
  std::string node_value;  // Empty: the node does not have the label.
};

struct SlicingCheckStatus {
  std::string name;  // "resource-type", "gpu-count", "instance-state"
  bool ok = false;
  std::string sentence;  // Empty if the check is ok.
};

// GET /v1/pools/NAME/slicing
struct Slicing {
  bool available = false;
  std::vector<SlicingCheckStatus> checks;  // In their order, up to the first that fails.
  std::string failed;                      // Its name; empty: none fails.
};

struct PoolStatus {
  uint32_t nodes = 0;
  uint32_t gpus = 0;
  uint32_t running_gpu_nodes = 0;
  std::vector<PoolDrift> drift;
  Slicing slicing;
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
