// The verbs that show nodes, devices and slices: each turns a view into rows, which are printed as a table or
// as a document. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "kubernetes/cli/cluster_view.h"
#include "kubernetes/cli/table.h"

namespace carve::kubernetes::cli {

struct NodeRow {
  std::string name;
  std::optional<std::string> group;  // Value of the label by which nodes are grouped.
  std::string bookkeeper, mode, policy;
  std::vector<std::string> differs;        // "mode", "policy": where it differs from most nodes of the group.
  std::optional<std::string> memory_unit;  // The cluster's; no value if the caller may not read it.
  uint32_t devices = 0;
  Bytes memory_used, memory;
  uint32_t compute_used_percent = 0, compute_percent = 0;  // In percent of one device.
  uint32_t slices = 0;
  std::vector<std::string> pending;  // "fixed-share -> native-burst-share (blocked by a/web-0)"
  std::vector<std::string> models;
  std::string placement, enforcement;
  bool simulated = false;
  std::string problem;  // Why the node is not used; empty if it is.
};
struct NodeList {
  std::vector<NodeRow> nodes;
  bool has_all_pods = true;
};
// `by` is the label by which the nodes are grouped, such as the label of their pool. Empty if they are not
// grouped.
NodeList node_rows(const ClusterView&, std::optional<MemoryUnit>, const std::string& by = "");
Table table_of(const NodeList&, Form);

struct DeviceRow {
  std::string node;
  uint32_t device = 0;
  std::string uuid, model;
  Bytes memory_used, memory;
  uint32_t compute_used_percent = 0, compute_percent = 100;
  uint32_t slices = 0;
  bool exclusive = false;
  std::string health;
};
struct DeviceList {
  std::vector<DeviceRow> devices;
  Bytes memory_used, memory;                               // Over all devices.
  uint32_t compute_used_percent = 0, compute_percent = 0;  // Over all devices, in percent of one device.
  uint32_t slices = 0;
  bool has_all_pods = true;
};
DeviceList device_rows(const ClusterView&);
Table table_of(const DeviceList&, Form);

struct SliceRow {
  std::string namespace_, pod, container;
  std::string node;                  // Empty if the pod is waiting.
  std::vector<std::string> devices;  // Index such as "0", or the UUID if the node does not show it.
  Bytes memory;                      // Over all devices.
  uint32_t compute_percent = 0;      // Over all devices, in percent of one; 0 without a share.
  std::string isolation, policy, enforcement;
  std::string asked;  // "16 x 1GiB", or the request as the dialect writes it.
};
struct SliceList {
  std::vector<SliceRow> slices;
};
// If `name_space` is empty, all namespaces are included.
SliceList slice_rows(const ClusterView&, const std::string& name_space);
Table table_of(const SliceList&, Form);

}  // namespace carve::kubernetes::cli
