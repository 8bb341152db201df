// Annotation carve.dev/devices of a node: its devices and settings, as reported by its agent. One line of
// JSON:
//
//   {"v":1,"boot":"4c1f...","devices":[{"i":0,"uuid":"GPU-1a2b...","model":"NVIDIA A10","usable":23835181056,
//    "context":268435456,"migrates":true,"health":"ok"}],"links":["X NV12","NV12 X"],"cpu":64000,
//    "memory":270582939648,"mode":{"desired":"none","effective":"none","blocked_by":[]},"policy":{...},
//    "placement":"binpack","best_effort":"refuse","enforcement":"library","simulated":false}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/node_mode.h"
#include "core/slice.h"
#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* devices_annotation = "carve.dev/devices";
inline constexpr const char* cordon_annotation = "carve.dev/cordon";  // Comma-separated UUIDs.
inline constexpr uint32_t devices_version = 1;
inline constexpr const char* healthy = "ok";

struct NodeDevice {
  uint32_t i = 0;  // Index in NVML's order.
  Uuid uuid;
  std::string model;     // "NVIDIA A10"
  uint64_t usable = 0;   // Bytes.
  uint64_t context = 0;  // Bytes of one context charged to a slice; 0 if reserved.
  bool migrates = false;
  std::string health = healthy;  // Otherwise why the device serves no slice.

  friend bool operator==(const NodeDevice&, const NodeDevice&) = default;
};

// A setting that changes when its last holder is gone. Holders are pods, as NAMESPACE/NAME.
template <class Value>
struct NodeSetting {
  std::optional<Value> desired;  // No value if no label requests one.
  Value effective{};
  std::vector<std::string> blocked_by;

  friend bool operator==(const NodeSetting&, const NodeSetting&) = default;
};

struct NodeDevices {
  uint32_t v = devices_version;
  std::string boot;  // Boot id of the node's kernel.
  std::vector<NodeDevice> devices;
  std::vector<std::string> links;  // One line per device, as printed by `nvidia-smi topo -m`.
  uint64_t cpu = 0;                // Thousandths of a core.
  uint64_t memory = 0;             // Bytes of the host.
  NodeSetting<NodeMode> mode;
  NodeSetting<Policy> policy;
  Strategy placement = Strategy::binpack;
  BestEffort best_effort = BestEffort::admit;
  std::string enforcement;
  bool simulated = false;

  friend bool operator==(const NodeDevices&, const NodeDevices&) = default;
};

inline Result<NodeDevices, std::string> read_devices(std::string_view text) {
  return read_annotation<NodeDevices>(devices_annotation, text, devices_version);
}

}  // namespace carve::kubernetes
