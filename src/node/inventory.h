// The devices that the agent remembers, in STATE/devices.json, so that it can serve before NVML responds: a
// faulty device can block NVML's first calls for seconds or forever, and running slices need their agent in
// the meantime. It is valid for one boot, one driver library and one set of options that change the devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/settings/settings.h"

namespace carve::node {

struct Inventory {
  std::vector<NodeDevice> devices;
  std::optional<place::Topology> topology;
  std::vector<unsigned> lost_indexes = {};  // Lost devices according to the driver. They are not remembered.
};

// The conditions of an inventory. One with a different key is not used.
struct InventoryKey {
  std::string boot_id;
  std::string libnvml;
  std::string simulated;  // --sim
  std::string reserve;    // --reserve
  std::string topology;   // --topology

  friend bool operator==(const InventoryKey&, const InventoryKey&) = default;
};

std::string write_inventory(const Inventory&, const InventoryKey&);
// Returns no value if the text is not an inventory of this key.
std::optional<Inventory> read_inventory(const std::string& text, const InventoryKey&);

// Returns whether an agent that serves with the remembered devices may continue with those that NVML
// reported.
bool are_same_devices(const std::vector<NodeDevice>& remembered, const std::vector<NodeDevice>& found);

}  // namespace carve::node
