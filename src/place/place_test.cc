#include "place/place.h"

#include <gmock/gmock.h>

#include <random>

namespace carve::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceSnapshot device(unsigned index, Bytes usable, Bytes free) {
  DeviceSnapshot c;
  c.device.index = index;
  c.device.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  c.device.native = usable;
  c.free = free;
  c.slices = free < usable ? 1 : 0;
  c.isolated = c.slices;
  return c;
}

Request asking(Bytes memory, unsigned devices = 1) {
  Request r;
  r.memory = PerDevice{memory};
  r.devices = devices;
  return r;
}

// Places one request after the other on a node with `devices`, as the agent does.
std::vector<size_t> land(std::vector<DeviceSnapshot> devices, Strategy policy, std::vector<Bytes> sizes) {
  std::vector<size_t> where;
  for (const Bytes size : sizes) {
    const Answer answer = place(devices, asking(size), policy);
    if (!answer.placement) {
      where.push_back(SIZE_MAX);
      continue;
    }
    const size_t i = answer.placement->parts[0].device;
    devices[i].free = minus(devices[i].free, size);
    devices[i].slices++;
    devices[i].isolated++;
    where.push_back(i);
  }
  return where;
}

Request placed(std::vector<PlacedPart> parts) {
  Request r;
  r.placed = std::move(parts);
  return *validated(r);
}

Request asking_part(uint32_t basis_points, unsigned devices) {
  Request r;
  r.memory = OfUsable{{basis_points}};
  r.devices = devices;
  return r;
}

// The parts of a slice are equal, so a percentage of several devices requires devices of the same size.
TEST(Place, puts_a_percentage_of_several_devices_on_devices_of_one_size) {
  const std::vector<DeviceSnapshot> unequal = {device(0, 20_GiB, 20_GiB), device(1, 10_GiB, 10_GiB)};
  const std::vector<DeviceSnapshot> three = {device(0, 10_GiB, 10_GiB), device(1, 20_GiB, 20_GiB),
                                             device(2, 20_GiB, 20_GiB)};
  for (const Strategy strategy : {Strategy::binpack, Strategy::spread}) {
    const Answer refused = place(unequal, asking_part(8000, 2), strategy);
    EXPECT_FALSE(refused.placement);
    EXPECT_TRUE(refused.is_lasting);
    EXPECT_EQ(refused.summary,
              "80% of the memory of 2 devices: devices 0 and 1 have 20 GiB and 10 GiB usable, so the "
              "percentage is not the same amount on each; request a number of bytes, such as 8 GiB");
    EXPECT_TRUE(place(unequal, asking_part(8000, 1), strategy).placement);
    const Answer placed = place(three, asking_part(8000, 2), strategy);
    ASSERT_TRUE(placed.placement) << placed.summary;
    EXPECT_THAT(placed.placement->devices(), ElementsAre(1, 2));
    EXPECT_EQ(placed.placement->parts[0].memory, 16_GiB);
  }
  Request exclusive = asking_part(10000, 2);
  exclusive.exclusive = true;
  EXPECT_TRUE(place(unequal, exclusive, Strategy::binpack).placement) << "whole devices may differ in size";
}

// Free capacity on one more device would be sufficient.
TEST(Place, lets_a_percentage_wait_for_devices_of_one_size) {
  const std::vector<DeviceSnapshot> full = {device(0, 10_GiB, 10_GiB), device(1, 20_GiB, 20_GiB),
                                            device(2, 20_GiB, 1_GiB)};
  const Answer answer = place(full, asking_part(8000, 2), Strategy::binpack);
  EXPECT_FALSE(answer.placement);
  EXPECT_FALSE(answer.is_lasting);
  EXPECT_THAT(answer.summary, HasSubstr("a percentage requires devices with the same amount of memory"));
}

TEST(Place, checks_parts_that_were_placed_elsewhere_without_moving_them) {
  std::vector<DeviceSnapshot> devices = {device(0, 10_GiB, 4_GiB), device(1, 10_GiB, 10_GiB)};
  const auto uuid = [&](size_t i) { return devices[i].device.uuid; };
  const Answer both = check_placed(devices, placed({{uuid(1), 7_GiB, {}}, {uuid(0), 4_GiB, {}}}));
  ASSERT_TRUE(both.placement) << both.summary;
  EXPECT_THAT(both.placement->devices(), ElementsAre(1, 0));
  EXPECT_EQ(both.placement->parts[0].memory, 7_GiB);
  // Device 1 has room, but the request may not go there.
  const Answer full = check_placed(devices, placed({{uuid(0), 5_GiB, {}}}));
  EXPECT_FALSE(full.placement);
  EXPECT_EQ(full.summary, "device 0: 5 GiB needed, 4 GiB free");
  EXPECT_EQ(full.verdicts[1].message, "the request names other devices");
  const Answer unknown = check_placed(devices, placed({{Uuid{{9}}, 5_GiB, {}}, {uuid(0), 5_GiB, {}}}));
  EXPECT_THAT(unknown.summary, HasSubstr("there is no device GPU-09"));
  EXPECT_THAT(unknown.summary, HasSubstr("; device 0: 5 GiB needed"));
}

TEST(Place, applies_each_rule_to_the_device_of_a_placed_part) {
  const struct {
    const char* message;
    void (*spoil)(DeviceSnapshot&);
  } rows[] = {
      {"lost from the bus", [](DeviceSnapshot& d) { d.trouble = "lost from the bus"; }},
      {"16 isolated slices", [](DeviceSnapshot& d) { d.isolated = d.slices = 16; }},
      {"an exclusive slice holds", [](DeviceSnapshot& d) { d.exclusive = true; }},
      {"effective policy is native-burst-share",
       [](DeviceSnapshot& d) { d.policy = Policy::native_burst_share; }},
      {"of its compute needed, 10% free", [](DeviceSnapshot& d) { d.free_share = {1000}; }},
      {"that one context takes", [](DeviceSnapshot& d) { d.context = 5_GiB; }},
  };
  for (const auto& row : rows) {
    DeviceSnapshot one = device(0, 10_GiB, 10_GiB);
    row.spoil(one);
    Request r = placed({{one.device.uuid, 4_GiB, {3000}}});
    r.policy = Policy::fixed_share;
    const Answer answer = check_placed(std::vector{one}, r);
    EXPECT_FALSE(answer.placement) << row.message;
    EXPECT_THAT(answer.summary, HasSubstr(row.message));
  }
}

TEST(Place, checks_a_placed_whole_device_with_all_its_memory) {
  const DeviceSnapshot empty = device(0, 10_GiB, 10_GiB);
  const auto whole = [&](Bytes memory) {
    Request r;
    r.exclusive = true;
    r.placed = {{empty.device.uuid, memory, {}}};
    return *validated(r);
  };
  EXPECT_TRUE(check_placed(std::vector{empty}, whole({})).placement);
  EXPECT_TRUE(check_placed(std::vector{empty}, whole(10_GiB)).placement);
  EXPECT_THAT(check_placed(std::vector{empty}, whole(9_GiB)).summary, HasSubstr("has 10 GiB usable"));
  DeviceSnapshot shared = device(0, 10_GiB, 9_GiB);
  EXPECT_THAT(check_placed(std::vector{shared}, whole({})).summary, HasSubstr("1 slice on it"));
}

TEST(Place, fills_one_device_before_the_next_under_binpack_but_not_under_spread) {
  const std::vector<DeviceSnapshot> two = {device(0, 15_GiB, 15_GiB), device(1, 15_GiB, 15_GiB)};
  EXPECT_THAT(land(two, Strategy::binpack, {2_GiB, 3_GiB}), ElementsAre(0, 0));
  EXPECT_THAT(land(two, Strategy::spread, {2_GiB, 3_GiB}), ElementsAre(0, 1));
  EXPECT_THAT(land(two, Strategy::binpack, {10_GiB, 10_GiB, 5_GiB, 5_GiB, 1_GiB}),
              ElementsAre(0, 1, 0, 1, SIZE_MAX));
  EXPECT_THAT(land(two, Strategy::spread, {2_GiB, 3_GiB, 1_GiB, 1_GiB}), ElementsAre(0, 1, 0, 0));
}

TEST(Place, takes_the_fullest_device_that_still_fits_under_binpack) {
  const std::vector<DeviceSnapshot> devices = {device(0, 10_GiB, 8_GiB), device(1, 10_GiB, 1_GiB),
                                               device(2, 10_GiB, 4_GiB)};
  EXPECT_THAT(place(devices, asking(3_GiB), Strategy::binpack).placement->devices(), ElementsAre(2));
  EXPECT_THAT(place(devices, asking(3_GiB), Strategy::spread).placement->devices(), ElementsAre(0));
  EXPECT_THAT(place(devices, asking(3_GiB, 2), Strategy::binpack).placement->devices(), ElementsAre(0, 2));
}

TEST(Place, chooses_the_best_connected_devices_if_the_topology_is_known) {
  std::vector<DeviceSnapshot> devices;
  for (unsigned i = 0; i < 4; ++i) devices.push_back(device(i, 10_GiB, 10_GiB));
  devices[1] = device(1, 10_GiB, 8_GiB);  // The fullest device, which binpack would otherwise choose first.
  const Wire wires[] = {{0, 1, Link::socket}, {0, 2, Link::socket}, {0, 3, Link::nvlink},
                        {1, 2, Link::bridge}, {1, 3, Link::socket}, {2, 3, Link::socket}};
  const Topology links = *Topology::of(4, wires);
  EXPECT_THAT(place(devices, asking(1_GiB, 2), Strategy::binpack).placement->devices(), ElementsAre(0, 1));
  const auto pair = place(devices, asking(1_GiB, 2), Strategy::binpack, {}, &links).placement;
  EXPECT_THAT(pair->devices(), ElementsAre(0, 3));
  EXPECT_EQ(pair->connected, Link::nvlink);
  devices[0].trouble = "lost";
  const auto next = place(devices, asking(1_GiB, 2), Strategy::binpack, {}, &links).placement;
  EXPECT_THAT(next->devices(), ElementsAre(1, 2));
  EXPECT_EQ(next->connected, Link::bridge);
  EXPECT_FALSE(place(devices, asking(1_GiB), Strategy::binpack, {}, &links).placement->connected);
}

TEST(Place, gives_the_reason_of_each_rule) {
  struct Row {
    const char* reason;
    void (*spoil)(DeviceSnapshot&, Request&);
  };
  const Row rows[] = {
      {"names GPU-63", [](DeviceSnapshot&, Request& r) { r.device = Uuid{{99}}; }},
      {"lost", [](DeviceSnapshot& c, Request&) { c.trouble = "lost from the bus"; }},
      {"11 GiB needed, 10 GiB usable", [](DeviceSnapshot&, Request& r) { r.memory = PerDevice{11_GiB}; }},
      {"that one context takes", [](DeviceSnapshot& c, Request&) { c.context = 5_GiB; }},
      {"an exclusive slice holds", [](DeviceSnapshot& c, Request&) { c.exclusive = true; }},
      {"2 slices on it, but the request is exclusive",
       [](DeviceSnapshot& c, Request& r) { c.slices = 2, r.exclusive = true, r.memory = {}; }},
      {"16 isolated slices", [](DeviceSnapshot& c, Request&) { c.isolated = 16; }},
      {"4 GiB needed, 3 GiB free", [](DeviceSnapshot& c, Request&) { c.free = 3_GiB; }},
      {"30% of its compute needed, 20% free",
       [](DeviceSnapshot& c, Request& r) { c.free_share = {2000}, r.share = {3000}; }},
  };
  for (const Row& row : rows) {
    std::vector<DeviceSnapshot> devices = {device(0, 10_GiB, 10_GiB)};
    Request request = asking(4_GiB);
    ASSERT_TRUE(place(devices, request, Strategy::binpack).placement);
    row.spoil(devices[0], request);
    const Answer answer = place(devices, request, Strategy::binpack);
    EXPECT_FALSE(answer.placement) << row.reason;
    EXPECT_THAT(answer.verdicts[0].message, HasSubstr(row.reason));
    EXPECT_THAT(answer.summary, HasSubstr(row.reason));
  }
}

TEST(Place, allows_managed_memory_beyond_the_device_only_if_the_device_can_migrate_it) {
  Request r = asking(4_GiB);
  r.spill = 2_GiB;
  std::vector<DeviceSnapshot> devices = {device(0, 22_GiB, 22_GiB), device(1, 22_GiB, 10_GiB)};
  EXPECT_THAT(place(devices, r, Strategy::binpack).summary,
              HasSubstr("devices 0, 1: its driver cannot move managed"));
  devices[0].device.migrates = true;
  EXPECT_THAT(place(devices, r, Strategy::binpack).placement->devices(), ElementsAre(0));
  r.spill = {};
  EXPECT_THAT(place(devices, r, Strategy::binpack).placement->devices(), ElementsAre(1));
}

TEST(Place, requires_memory_and_compute_to_be_free_on_the_same_device) {
  std::vector<DeviceSnapshot> devices = {device(0, 10_GiB, 10_GiB), device(1, 10_GiB, 1_GiB)};
  devices[0].free_share = {1000};
  Request request = asking(2_GiB);
  request.share = {5000};
  EXPECT_FALSE(place(devices, request, Strategy::binpack).placement);
  request.share = {};
  EXPECT_TRUE(place(devices, request, Strategy::binpack).placement);
}

TEST(Place, allows_more_than_sixteen_slices_on_a_device_without_isolation) {
  std::vector<DeviceSnapshot> devices = {device(0, 10_GiB, 10_GiB)};
  devices[0].isolated = 16;
  Request request = asking(1_GiB);
  request.isolation = Isolation::none;
  EXPECT_TRUE(place(devices, request, Strategy::binpack).placement);
}

TEST(Place, combines_equal_reasons) {
  const std::vector<DeviceSnapshot> devices = {device(0, 4_GiB, 1_GiB), device(1, 4_GiB, 1_GiB),
                                               device(2, 4_GiB, 2_GiB)};
  EXPECT_EQ(
      place(devices, asking(3_GiB), Strategy::binpack).summary,
      "devices 0, 1: 3 GiB needed, 1 GiB free; device 2: 3 GiB needed, 2 GiB free; the largest free block "
      "is 2 GiB: the request fits with 1 GiB less");
  EXPECT_EQ(
      place(devices, asking(2_GiB, 2), Strategy::binpack).summary,
      "2 devices are needed, but only 1 of 3 fit; devices 0, 1: 2 GiB needed, 1 GiB free; the largest free "
      "block is 1 GiB: the request fits with 1 GiB less on each device");
  EXPECT_EQ(place({}, asking(2_GiB), Strategy::binpack).summary, "the node has no devices");
}

// Common rejections, with their complete messages.
TEST(Place, reports_what_each_device_lacks_and_what_would_fit) {
  Request ten_percent = asking(20_GiB);
  ten_percent.share = {1000};
  std::vector<DeviceSnapshot> much_memory = {device(0, 48_GiB, 48_GiB)};
  much_memory[0].free_share = {500};
  std::vector<DeviceSnapshot> crowded = {device(0, 16_GiB, 8_GiB)};
  crowded[0].isolated = crowded[0].slices = 16;
  const std::vector<DeviceSnapshot> unequal = {device(0, 24_GiB, 20_GiB), device(1, 16_GiB, 5_GiB)};
  const std::vector<DeviceSnapshot> halves = {device(0, 15_GiB, 8_GiB), device(1, 15_GiB, 8_GiB)};
  const std::vector<PlacedSlice> placed_slices = {{"a", {{0, 7_GiB, {}}}}, {"b", {{1, 7_GiB, {}}}}};
  const struct {
    std::span<const DeviceSnapshot> devices;
    Request request;
    std::span<const PlacedSlice> placed_slices;
    const char* summary;
  } rows[] = {
      {much_memory,
       ten_percent,
       {},
       "device 0: 10% of its compute needed, 5% free; the request fits with at most 5% of the compute"},
      {crowded, asking(128_MiB), {}, "device 0: it has 16 isolated slices, the maximum"},
      {unequal,
       asking(8_GiB, 2),
       {},
       "2 devices are needed, but only 1 of 2 fit; device 1: 8 GiB needed, 5 GiB free; the largest free "
       "block is 5 GiB: the request fits with 3 GiB less on each device"},
      {halves, asking(12_GiB), placed_slices,
       "devices 0, 1: 12 GiB needed, 8 GiB free; the largest free block is 8 GiB: the request fits "
       "with 4 GiB less; moving 'a' (7 GiB) from device 0 to device 1 would make room"},
      {halves, asking(16_GiB), placed_slices,
       "devices 0, 1: 16 GiB needed, 15 GiB usable; "
       "the largest free block is 8 GiB: the request fits with 8 GiB less"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(place(row.devices, row.request, Strategy::binpack, row.placed_slices).summary, row.summary);
}

TEST(Place, proposes_a_move_on_devices_whose_compute_is_over_committed) {
  // With --overcommit-compute, the snapshots have all compute free, even if slices with a share are on the
  // device.
  const std::vector<DeviceSnapshot> devices = {device(0, 16_GiB, 10_GiB), device(1, 16_GiB, 10_GiB)};
  for (uint32_t share = 0; share <= 10000; share += 100) {
    const std::vector<PlacedSlice> placed_slices = {{"a", {{0, 6_GiB, {share}}}},
                                                    {"b", {{1, 6_GiB, {share}}}}};
    const Answer answer = place(devices, asking(12_GiB), Strategy::binpack, placed_slices);
    EXPECT_THAT(answer.summary, HasSubstr("moving 'a' (6 GiB) from device 0 to device 1")) << share;
  }
}

TEST(Place, never_takes_more_than_a_device_has_or_the_same_device_twice) {
  std::mt19937 dice(20);
  for (int round = 0; round < 2000; ++round) {
    std::vector<DeviceSnapshot> devices;
    for (unsigned i = 0, n = dice() % 8; i < n; ++i) {
      const Bytes usable{(dice() % 32 + 1) << 30};
      devices.push_back(device(i, usable, Bytes{dice() % (usable.count >> 20) << 20}));
      devices.back().free_share = {static_cast<uint32_t>(dice() % 10001)};
      devices.back().exclusive = dice() % 8 == 0;
    }
    Request request = asking(Bytes{(dice() % 16384 + 1ull) << 20}, dice() % 4 + 1);
    request.share = {static_cast<uint32_t>(dice() % 3 * 2500)};
    const Answer answer = place(devices, request, dice() % 2 ? Strategy::binpack : Strategy::spread);
    ASSERT_EQ(answer.verdicts.size(), devices.size());
    if (!answer.placement) {
      ASSERT_FALSE(answer.summary.empty());
      continue;
    }
    const auto chosen = answer.placement->devices();
    ASSERT_EQ(chosen.size(), request.devices);
    ASSERT_TRUE(std::ranges::adjacent_find(chosen, std::ranges::greater_equal{}) == chosen.end());
    for (const size_t i : chosen) {
      ASSERT_LE(answer.placement->parts[0].memory, devices[i].free);
      ASSERT_LE(answer.placement->parts[0].share, devices[i].free_share);
      ASSERT_FALSE(devices[i].exclusive);
    }
  }
}

}  // namespace
}  // namespace carve::place
