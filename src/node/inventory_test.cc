#include "node/inventory.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

const InventoryKey key{"boot", "libnvidia-ml.so.1", "a10x2", "1", ""};

Inventory two_devices() {
  Inventory out;
  for (unsigned i = 0; i < 2; ++i) {
    NodeDevice& d = out.devices.emplace_back();
    d.device.uuid.bytes[0] = static_cast<uint8_t>(i + 1);
    d.device.index = i;
    d.device.name = "NVIDIA A10";
    d.device.native = {24ull << 30};
    d.device.reserved = {297ull << 20};
    d.device.migrates = true;
    d.context = {256ull << 20};
    d.minor = i;
    d.pci_id = "0000:01:00.0";
  }
  const place::Wire wire{0, 1, place::Link::nvlink};
  out.topology = *place::Topology::of(2, std::span(&wire, 1));
  return out;
}

TEST(Inventory, is_read_as_it_was_written) {
  const Inventory written = two_devices();
  const auto read = read_inventory(write_inventory(written, key), key);
  ASSERT_TRUE(read);
  EXPECT_TRUE(are_same_devices(written.devices, read->devices));
  EXPECT_EQ(read->topology, written.topology);
  EXPECT_EQ(read->devices[1].context.count, 256u << 20);
  EXPECT_EQ(read->devices[1].pci_id, "0000:01:00.0");
  EXPECT_TRUE(read->devices[1].device.migrates);
}

TEST(Inventory, is_ignored_for_another_boot_driver_or_option) {
  const std::string text = write_inventory(two_devices(), key);
  for (const auto field : {&InventoryKey::boot_id, &InventoryKey::libnvml, &InventoryKey::simulated,
                           &InventoryKey::reserve, &InventoryKey::topology}) {
    InventoryKey other = key;
    other.*field += "x";
    EXPECT_FALSE(read_inventory(text, other));
  }
}

TEST(Inventory, is_ignored_if_the_file_is_damaged) {
  const std::string text = write_inventory(two_devices(), key);
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(read_inventory(text.substr(0, size), key));
  std::string other = text;
  other.replace(other.find("GPU-"), 4, "XPU-");
  EXPECT_FALSE(read_inventory(other, key));
}

TEST(Inventory, detects_devices_that_differ) {
  const Inventory remembered = two_devices();
  Inventory found = two_devices();
  EXPECT_TRUE(are_same_devices(remembered.devices, found.devices));
  found.devices[1].context = {};
  EXPECT_TRUE(are_same_devices(remembered.devices, found.devices))
      << "the size of a context is not part of the identity";
  found.devices[1].device.reserved.count += 1;
  EXPECT_FALSE(are_same_devices(remembered.devices, found.devices));
  found = two_devices();
  found.devices.pop_back();
  EXPECT_FALSE(are_same_devices(remembered.devices, found.devices));
}

}  // namespace
}  // namespace carve::node
