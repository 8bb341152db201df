// The devices that the agent stores in STATE/devices.json, so that it can serve before NVML responds: a
// faulty device can block NVML's first calls for seconds or forever, and running slices need their agent in
// the meantime. The inventory is valid for one boot, one driver library and one set of options that affect
// the devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/settings/settings.h"

namespace carve::node {

struct Inventory {
  std::vector<NodeDevice> devices;
  std::optional<place::Topology> topology;
  std::vector<unsigned> lost_indexes = {};  // Devices that the driver reports as lost. Not stored.
};

// The conditions under which an inventory is valid. An inventory with another key is ignored.
struct InventoryKey {
  std::string boot_id;
  std::string libnvml;
  std::string simulated;  // Value of --sim.
  std::string reserve;    // Value of --reserve.
  std::string topology;   // Value of --topology.

  friend bool operator==(const InventoryKey&, const InventoryKey&) = default;
};

std::string write_inventory(const Inventory&, const InventoryKey&);
// Returns no value if the text is not an inventory with this key.
std::optional<Inventory> read_inventory(const std::string& text, const InventoryKey&);

// Returns whether an agent that serves with the remembered devices may continue with the devices that NVML
// reported.
bool are_same_devices(const std::vector<NodeDevice>& remembered, const std::vector<NodeDevice>& found);

}  // namespace carve::node
