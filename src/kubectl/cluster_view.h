// What a caller sees of the cluster: its nodes with devices and its pods with slices, as the API server has
// them. All tables are computed from it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/books/node_book.h"
#include "cluster/snapshot/cluster_pod.h"
#include "kube/answers.h"
#include "wire/kube/node_devices.h"

namespace carve::kubectl {

struct ViewNode {
  kube::ObjectMeta object;
  std::optional<kube::NodeDevices> devices;  // None: `problem` says why.
  std::optional<cluster::ClusterNode> state;
  std::string problem;
  std::vector<cluster::DeviceBook> booked;  // A row for each device of `state`.
};

struct ClusterView {
  std::vector<ViewNode> nodes;  // By name.
  std::vector<kube::ObjectMeta> pod_objects;
  std::vector<cluster::ClusterPod> pods;  // In the order of their objects; those that run or wait.
  bool has_all_pods = true;               // False: numbers of what is used are lower bounds.
};

// Reads the lists of nodes and of pods (/api/v1/nodes, /api/v1/pods). Fails with a sentence.
Result<ClusterView, std::string> read_view(std::string_view nodes_json, std::string_view pods_json);

}  // namespace carve::kubectl
