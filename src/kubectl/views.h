// The verbs that show nodes, devices and slices: each makes rows from a view, which are printed as a table or
// as a document. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "kubectl/cluster_view.h"
#include "kubectl/table.h"

namespace carve::kubectl {

struct NodeRow {
  std::string name, bookkeeper, mode, policy;
  std::optional<std::string> memory_unit;  // Of the cluster; none: the caller may not read it.
  uint32_t devices = 0;
  Bytes memory_used, memory;
  uint32_t compute_used_percent = 0, compute_percent = 0;  // 100 a device.
  uint32_t slices = 0;
  std::vector<std::string> pending;  // "fixed-share -> native-burst-share (blocked by a/web-0)"
  std::vector<std::string> models;
  std::string placement, enforcement;
  bool simulated = false;
  std::string problem;  // Why the node is not used; empty: it is.
};
struct NodeList {
  std::vector<NodeRow> nodes;
  bool has_all_pods = true;
};
NodeList node_rows(const ClusterView&, std::optional<MemoryUnit>);
Table table_of(const NodeList&, Form);

struct DeviceRow {
  std::string node;
  uint32_t device = 0;
  std::string uuid, model;
  Bytes memory_used, memory;
  uint32_t compute_used_percent = 0;
  uint32_t slices = 0;
  bool exclusive = false;
  std::string health;
};
struct DeviceList {
  std::vector<DeviceRow> devices;
  Bytes memory_used, memory;  // Over all devices.
  uint32_t slices = 0;
  bool has_all_pods = true;
};
DeviceList device_rows(const ClusterView&);
Table table_of(const DeviceList&, Form);

struct SliceRow {
  std::string name_space, pod, container;
  std::string node;                  // Empty: the pod waits.
  std::vector<std::string> devices;  // "0", or its UUID if the node does not show it.
  Bytes memory;                      // Over all devices.
  uint32_t compute_percent = 0;      // Of each device; 0: none.
  std::string isolation, policy, enforcement;
  std::string asked;  // "16 x 1GiB", or the dialect's words.
};
struct SliceList {
  std::vector<SliceRow> slices;
};
// `name_space`: empty: all.
SliceList slice_rows(const ClusterView&, const std::string& name_space);
Table table_of(const SliceList&, Form);

}  // namespace carve::kubectl
