// The part of the cluster that a caller may read: nodes with devices and pods with slices, as stored by the
// API server. All tables are computed from this view. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/coordinator/cache/cached_node.h"
#include "kubernetes/coordinator/snapshot/cluster_pod.h"
#include "kubernetes/format/node_devices.h"

namespace carve::kubernetes::cli {

struct ViewNode {
  kubernetes::ObjectMeta object;
  std::optional<kubernetes::NodeDevices> devices;  // No value if there is a `problem`.
  bool is_dra = false;                             // Pods get its devices with resource claims.
  bool has_slots = true;  // False if kubelet offers no slot; no pod with a slice can then run on the node.
  std::optional<fleet::GpuNode> state;
  std::string problem;
  std::vector<fleet::DeviceUse> in_use;  // One row per device of `state`.
};

struct ClusterView {
  std::vector<ViewNode> nodes;  // By name.
  std::vector<kubernetes::ObjectMeta> pod_objects;
  std::vector<coordinator::ClusterPod> pods;  // The pods that run or wait, in the order of their objects.
  bool has_all_pods = true;                   // If false, the amounts in use are lower bounds.
  std::string nodes_problem;                  // Why the caller cannot list the nodes. Empty if it can.
};

// Reads the lists of nodes and of pods (/api/v1/nodes, /api/v1/pods). Fails with a message.
Result<ClusterView, std::string> read_view(std::string_view nodes_json, std::string_view pods_json);

}  // namespace carve::kubernetes::cli
