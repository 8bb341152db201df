// The fleet as the engine sees it: nodes with devices, and how much of each is free now.
//
// All data for a decision is in two arrays without pointers, with 40 bytes per node and 40 per device (360
// bytes for a node with 8 devices). A cache with entries per node reads the journal of changes to find the
// entries to update. So the cost of placing, releasing, and adding or removing a node is proportional to what
// changes.
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

inline constexpr uint8_t node_model = UINT8_MAX;

struct DeviceState {
  Bytes usable;
  Bytes free;     // Free bytes of the usable memory.
  Bytes context;  // Bytes of one context that the slice pays; 0 if the reserve pays them.
  Share free_share = whole_device;
  uint8_t slices = 0;
  uint8_t isolated = 0;    // Slices with limited memory.
  bool exclusive = false;  // An exclusive slice holds the device.
  bool sick = false;
  bool partitioned = false;  // The device is in MIG mode and cannot be sliced.
  bool migrates = false;     // Managed memory may exceed the device's memory.
  bool shared_out = false;   // A slice's share is enforced, and best-effort slices are not admitted.
  uint8_t policy = any_policy;
  uint8_t model = node_model;  // Bit number in Models, if the node has several models.

  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

struct NodeState {
  Bytes host_free;
  uint32_t cpu_all = 0;  // Thousandths of a core; at least cpu_free when the node is added.
  uint32_t cpu_free = 0;
  uint32_t first = 0;  // Number of the node's first device in the fleet.
  uint8_t devices = 0;
  uint8_t model = 0;  // Bit number in Models. If `mixed`, the model of most of its devices.
  uint8_t kind = 0;   // Bit number in NodeKinds.
  uint8_t policy = any_policy;
  bool up = true;
  bool isolates = true;  // Its driver and agent can limit memory.
  bool mixed = false;    // Its devices have different models.
};

// The device of a part and the part's bytes there.
struct PartPlace {
  unsigned device = 0;  // Index on the node.
  Bytes memory;

  friend bool operator==(const PartPlace&, const PartPlace&) = default;
};

// The position of a placed request. place() returns it and release() takes it.
struct Assignment {
  uint32_t node = 0;
  DeviceSet devices = 0;
  Bytes memory;  // Bytes on each device if the parts are equal, sized for the smallest device.
  // The device of each part if the parts differ. If empty, each device has one of the equal parts.
  std::vector<PartPlace> parts;

  // Returns the devices of all parts. Equal parts are in ascending order of the devices.
  std::vector<PartPlace> places() const;
  // Returns the bytes on all devices.
  Bytes total() const;
  // Returns the part on a device of the assignment, or the first part if the parts are equal.
  unsigned part_on(unsigned device) const;
  Bytes memory_on(unsigned device) const;

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

class Fleet {
 public:
  // Returns the bit of a model, adding the model if it is new. Returns no value if there are already
  // max_models.
  std::optional<unsigned> model(std::string_view name);
  std::optional<unsigned> known_model(std::string_view name) const;
  std::string_view model_name(unsigned bit) const { return models_[bit]; }
  unsigned models() const { return static_cast<unsigned>(models_.size()); }

  // Adds a node with at most max_node_devices devices, and sets node.first and node.devices. Among equal
  // nodes, the one added first is preferred.
  uint32_t add(NodeState, std::span<const DeviceState>);

  uint32_t nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  const NodeState& node(uint32_t n) const { return nodes_[n]; }
  // A node or a whole fleet may have no devices.
  std::span<const DeviceState> devices(uint32_t n) const {
    return {devices_.data() + nodes_[n].first, nodes_[n].devices};
  }
  uint32_t devices() const { return static_cast<uint32_t>(devices_.size()); }
  unsigned largest_node() const { return largest_node_; }  // Number of devices.
  uint32_t devices_of_model(unsigned bit) const { return sums_[bit].devices; }

  // Prefetches data that will be read soon.
  void fetch_node(uint32_t n) const {
    __builtin_prefetch(&nodes_[n]);
    __builtin_prefetch(&last_[n]);
  }
  void fetch_devices(uint32_t n) const {
    const char* const from = reinterpret_cast<const char*>(devices_.data() + nodes_[n].first);
    for (size_t at = 0; at < nodes_[n].devices * sizeof(DeviceState); at += 64) __builtin_prefetch(from + at);
  }

  void take(const RequestShape&, const Assignment&);
  void give(const RequestShape&, const Assignment&);
  void set_up(uint32_t n, bool up);
  void set_host(uint32_t n, uint32_t cpu_free, Bytes host_free);
  void set_device(uint32_t n, unsigned i, const DeviceState&);

  // Sets how the devices of a node are connected; for other nodes this is unknown. Stored separately, because
  // few decisions need it.
  void set_topology(uint32_t n, const Topology& t) { topologies_.insert_or_assign(n, t); }
  const Topology* topology(uint32_t n) const {
    const auto found = topologies_.find(n);
    return found == topologies_.end() ? nullptr : &found->second;
  }

  // Changes of nodes are numbered from 1. A reader that has processed all changes up to `seen` visits the
  // nodes of the later changes, and skips a node that has an even later change.
  uint64_t changes() const { return changes_; }
  uint64_t last_change(uint32_t n) const { return last_[n]; }
  uint32_t changed_node(uint64_t change) const { return journal_[change & (journal_.size() - 1)]; }
  // Returns whether the journal still holds every change after `seen`.
  bool journal_covers(uint64_t seen) const { return changes_ - seen < journal_.size() && seen >= floor_; }

  // Sums over the fleet, which are updated with each change.
  uint64_t free_share() const { return free_share_; }  // In basis points of a device.
  uint64_t free_share_of_model(unsigned bit) const { return sums_[bit].free_share; }
  Bytes free_of_model(unsigned bit) const { return sums_[bit].free; }
  Bytes usable_of_model(unsigned bit) const { return sums_[bit].usable; }

 private:
  struct ModelSums {  // Sums over the devices of one model.
    uint32_t devices = 0;
    uint64_t free_share = 0;  // In basis points of a device.
    Bytes free, usable;
  };

  void move(const RequestShape&, const Assignment&, bool taken);
  void changed(uint32_t n);

  std::vector<NodeState> nodes_;
  std::vector<DeviceState> devices_;
  std::vector<std::string> models_;
  std::vector<ModelSums> sums_;                                // Indexed by model.
  std::vector<uint32_t> journal_ = std::vector<uint32_t>(64);  // A ring; its length is a power of two.
  std::vector<uint64_t> last_;
  std::unordered_map<uint32_t, Topology> topologies_;
  uint64_t changes_ = 0;
  uint64_t floor_ = 0;  // The journal begins after this change.
  uint64_t free_share_ = 0;
  unsigned largest_node_ = 0;
};

// Returns the shape of a validated request for this fleet. A model that the fleet does not have matches no
// node. If the request names a device, the caller must look it up (RequestShape::only).
RequestShape shape_of(const Request&, const Fleet&);

}  // namespace carve::place
