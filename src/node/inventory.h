// What the agent remembers of its devices, in STATE/devices.json, so that it can serve before NVML has
// answered: a faulty device can hold NVML's first calls for seconds or for ever, and running slices need
// their agent meanwhile. It is valid for one boot, one driver library and one set of options that change the
// devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/slice/settings.h"

namespace carve::node {

struct Inventory {
  std::vector<NodeDevice> devices;
  std::optional<place::Topology> topology;
  std::vector<unsigned> lost_indexes =
      {};  // Of devices that the driver reported as lost. They are not remembered.
};

// What a remembered inventory depends on. An inventory with another key is not used.
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

// Returns whether an agent that serves with the remembered devices may go on with those that NVML reported.
bool are_same_devices(const std::vector<NodeDevice>& remembered, const std::vector<NodeDevice>& found);

}  // namespace carve::node
