#include "node/inventory.h"

#include <algorithm>

#include "wire/api/json.h"

namespace carve::node {
namespace {

struct StoredDevice {
  std::string uuid, name;
  uint32_t index = 0;
  uint64_t native_bytes = 0, reserved_bytes = 0;
  bool migrates = false;
  uint64_t context_bytes = 0;
  std::string context_trouble;
  uint32_t minor = 0;
  std::string pci_id;
};
struct StoredLink {
  uint32_t from = 0, to = 0;
  std::string link;
};
struct Stored {
  std::string boot_id, libnvml, simulated, reserve, topology;
  std::vector<StoredDevice> devices;
  bool has_links = false;
  std::vector<StoredLink> links;
};

InventoryKey key_of(const Stored& stored) {
  return {stored.boot_id, stored.libnvml, stored.simulated, stored.reserve, stored.topology};
}

}  // namespace

std::string write_inventory(const Inventory& inventory, const InventoryKey& key) {
  Stored out{.boot_id = key.boot_id,
             .libnvml = key.libnvml,
             .simulated = key.simulated,
             .reserve = key.reserve,
             .topology = key.topology,
             .devices = {},
             .has_links = inventory.topology.has_value(),
             .links = {}};
  for (const NodeDevice& d : inventory.devices)
    out.devices.push_back({.uuid = text(d.device.uuid),
                           .name = d.device.name,
                           .index = d.device.index,
                           .native_bytes = d.device.native.count,
                           .reserved_bytes = d.device.reserved.count,
                           .migrates = d.device.migrates,
                           .context_bytes = d.context.count,
                           .context_trouble = d.context_trouble,
                           .minor = d.minor,
                           .pci_id = d.pci_id});
  const auto count = static_cast<unsigned>(inventory.devices.size());
  for (unsigned a = 0; inventory.topology && a < count; ++a)
    for (unsigned b = a + 1; b < count; ++b)
      out.links.push_back({a, b, std::string(place::word(inventory.topology->link(a, b)))});
  return api::write(out);
}

std::optional<Inventory> read_inventory(const std::string& document, const InventoryKey& key) {
  const auto stored = api::read<Stored>(document, api::Reading::lenient);
  if (!stored || stored->devices.empty() || key_of(*stored) != key) return std::nullopt;
  Inventory out;
  for (const StoredDevice& d : stored->devices) {
    const auto uuid = parse_uuid(d.uuid);
    if (!uuid) return std::nullopt;
    NodeDevice& device = out.devices.emplace_back();
    device.device = {.uuid = *uuid,
                     .index = d.index,
                     .name = d.name,
                     .native = {d.native_bytes},
                     .reserved = {d.reserved_bytes},
                     .migrates = d.migrates};
    device.context = {d.context_bytes};
    device.context_trouble = d.context_trouble;
    device.minor = d.minor;
    device.pci_id = d.pci_id;
  }
  if (!stored->has_links) return out;
  std::vector<place::Wire> wires;
  for (const StoredLink& l : stored->links) {
    const auto link = place::parse_link(l.link);
    if (!link) return std::nullopt;
    wires.push_back({l.from, l.to, *link});
  }
  const auto topology = place::Topology::of(static_cast<unsigned>(out.devices.size()), wires);
  if (!topology) return std::nullopt;
  out.topology = *topology;
  return out;
}

bool are_same_devices(const std::vector<NodeDevice>& remembered, const std::vector<NodeDevice>& found) {
  return std::ranges::equal(remembered, found, [](const NodeDevice& a, const NodeDevice& b) {
    return a.device.uuid == b.device.uuid && a.device.index == b.device.index &&
           a.device.native == b.device.native && a.device.reserved == b.device.reserved && a.minor == b.minor;
  });
}

}  // namespace carve::node
