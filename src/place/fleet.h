// The fleet as the engine sees it: nodes with devices, and how much of each is free now.
//
// All that a decision reads lies in two arrays without pointers: 40 bytes a node and 40 a device (an 8-device
// node: 360 bytes). Whoever caches something per node asks the journal of changes what to look at again, so
// placing, releasing and a node's coming and going cost what they changed and nothing else.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "place/request_shape.h"
#include "place/topology.h"

namespace carve::place {

struct DeviceState {
  Bytes usable;
  Bytes free;     // Of usable.
  Bytes context;  // What one context takes of a slice here; 0: nothing, the reserve pays.
  Share free_share = whole_device;
  uint8_t slices = 0;
  uint8_t isolated = 0;    // Those of the slices whose memory is limited.
  bool exclusive = false;  // Its one slice wants it alone.
  bool sick = false;
  bool partitioned = false;  // MIG mode: hardware instances are not ours to slice.
  bool migrates = false;     // Managed memory may exceed the device.
  bool shared_out = false;   // Somebody's share is enforced on it: who keeps to none has no place there.
  uint8_t policy = any_policy;

  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

struct NodeState {
  Bytes host_free;
  uint32_t cpu_all = 0;  // In thousandths of a core; at least what is free when the node is added.
  uint32_t cpu_free = 0;
  uint32_t first = 0;  // Number of its first device in the fleet.
  uint8_t devices = 0;
  uint8_t model = 0;  // Bit number in Models; the devices of one node are of one model.
  uint8_t policy = any_policy;
  bool up = true;
  bool isolates = true;  // Its driver and agent can limit memory.
};

// Where something stands: what place() answers and release() takes back.
struct Assignment {
  uint32_t node = 0;
  DeviceSet devices = 0;
  Bytes memory;  // Of each device: equal parts, the smallest device's.

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

class Fleet {
 public:
  // The bit of a model, new or known; nothing where max_models are known already.
  std::optional<unsigned> model(std::string_view name);
  std::optional<unsigned> known_model(std::string_view name) const;
  std::string_view model_name(unsigned bit) const { return models_[bit]; }
  unsigned models() const { return static_cast<unsigned>(models_.size()); }

  // The order in which nodes are added is the order in which equals are preferred.
  // At most max_node_devices devices; node.first and node.devices are set here.
  uint32_t add(NodeState, std::span<const DeviceState>);

  uint32_t nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  const NodeState& node(uint32_t n) const { return nodes_[n]; }
  std::span<const DeviceState> devices(uint32_t n) const {
    return {&devices_[nodes_[n].first], nodes_[n].devices};
  }
  uint32_t devices() const { return static_cast<uint32_t>(devices_.size()); }
  unsigned largest_node() const { return largest_node_; }  // Its devices.
  uint32_t devices_of_model(unsigned bit) const { return devices_of_model_[bit]; }

  // Says to the processor that they will be read soon.
  void fetch_node(uint32_t n) const {
    __builtin_prefetch(&nodes_[n]);
    __builtin_prefetch(&last_[n]);
  }
  void fetch_devices(uint32_t n) const {
    const char* const from = reinterpret_cast<const char*>(&devices_[nodes_[n].first]);
    for (size_t at = 0; at < nodes_[n].devices * sizeof(DeviceState); at += 64) __builtin_prefetch(from + at);
  }

  void take(const RequestShape&, const Assignment&);
  void give(const RequestShape&, const Assignment&);
  void set_up(uint32_t n, bool up);
  void set_device(uint32_t n, unsigned i, const DeviceState&);

  // How its devices are connected; nothing is known of those of other nodes. Kept beside, since few are
  // asked.
  void set_topology(uint32_t n, const Topology& t) { topologies_.insert_or_assign(n, t); }
  const Topology* topology(uint32_t n) const {
    const auto found = topologies_.find(n);
    return found == topologies_.end() ? nullptr : &found->second;
  }

  // Every change of a node has a number, from 1. A reader that saw all up to `seen` looks at the nodes
  // of the changes after it, and skips those whose last change is a later one.
  uint64_t changes() const { return changes_; }
  uint64_t last_change(uint32_t n) const { return last_[n]; }
  uint32_t changed_node(uint64_t change) const { return journal_[change & (journal_.size() - 1)]; }
  // Whether the journal still holds everything after `seen`.
  bool journal_covers(uint64_t seen) const { return changes_ - seen < journal_.size() && seen >= floor_; }

  // Whole-fleet sums, kept with each change.
  uint64_t free_share() const { return free_share_; }  // Basis points.
  uint64_t free_share_of_model(unsigned bit) const { return free_share_of_model_[bit]; }

 private:
  void move(const RequestShape&, const Assignment&, bool taken);
  void changed(uint32_t n);

  std::vector<NodeState> nodes_;
  std::vector<DeviceState> devices_;
  std::vector<std::string> models_;
  std::vector<uint32_t> devices_of_model_;
  std::vector<uint64_t> free_share_of_model_;
  std::vector<uint32_t> journal_ = std::vector<uint32_t>(64);  // A ring; its length is a power of two.
  std::vector<uint64_t> last_;
  std::unordered_map<uint32_t, Topology> topologies_;
  uint64_t changes_ = 0;
  uint64_t floor_ = 0;  // The journal begins after this change.
  uint64_t free_share_ = 0;
  unsigned largest_node_ = 0;
};

// A validated request as this fleet's engine counts it. Models that the fleet does not know are allowed for
// nothing; a named device is the caller's to find (Ask::only).
RequestShape shape_of(const Request&, const Fleet&);

}  // namespace carve::place
