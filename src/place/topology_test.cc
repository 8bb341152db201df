#include "place/topology.h"

#include <gmock/gmock.h>

#include <random>

#include "place/engine.h"

namespace carve::place {
namespace {

using testing::HasSubstr;

// Eight devices, as in many nodes: two sockets with four devices each, two switches per socket, and NVLink
// between devices 0 and 1 and among 4 to 7.
Topology eight() {
  std::vector<Wire> wires;
  for (unsigned a = 0; a < 8; ++a)
    for (unsigned b = a + 1; b < 8; ++b)
      wires.push_back({a, b,
                       (a == 0 && b == 1) || a >= 4 ? Link::nvlink
                       : a / 2 == b / 2             ? Link::bridge
                       : a / 4 == b / 4             ? Link::numa
                                                    : Link::socket});
  return *Topology::of(8, wires);
}

TEST(Topology, is_written_with_the_labels_that_it_parses) {
  const Topology t = eight();
  std::string matrix;
  for (unsigned i = 0; i < 8; ++i) matrix += fmt::format("\tGPU{}", i);
  for (unsigned i = 0; i < 8; ++i) matrix += fmt::format("\nGPU{}\t{}", i, t.lines(8)[i]);
  EXPECT_EQ(*Topology::read(matrix, 8), t);
  EXPECT_EQ(t.lines(2), (std::vector<std::string>{"X NV1", "NV1 X"}));
}

// Returns `count` devices of the tightest group: the preferred ones first, then the lowest-numbered.
DeviceSet chosen_of(const Topology& t, DeviceSet set, unsigned count, DeviceSet liked) {
  const auto has_enough = [&](DeviceSet group) { return std::popcount(group) >= static_cast<int>(count); };
  const DeviceSet group = t.tightest(set, liked, has_enough);
  EXPECT_TRUE(has_enough(group));
  RequestShape shape;
  shape.devices = static_cast<uint8_t>(count);
  const FittingDevices fit{.parts = count, .any = group};
  return choose(shape, fit, [&](unsigned, unsigned i) { return (liked >> i & 1) == 0; }).set;
}

TEST(Topology, chooses_the_smallest_of_the_tightest_groups_that_fit) {
  const Topology t = eight();
  const struct {
    DeviceSet set;
    unsigned count;
    DeviceSet liked;
    DeviceSet chosen;
  } rows[] = {
      {0b11111111, 2, 0, 0b00000011},           // The NVLink pair, not two devices of the larger group.
      {0b11111110, 2, 0, 0b00110000},           // The pair is incomplete, so two of the group of four.
      {0b00001110, 2, 0, 0b00001100},           // There is no NVLink, so below one switch.
      {0b00001010, 2, 0, 0b00001010},           // Below one socket.
      {0b00010001, 2, 0, 0b00010001},           // There is no tighter pair.
      {0b11111111, 4, 0, 0b11110000},           //
      {0b01111111, 4, 0, 0b00001111},           // Three devices on NVLink are not enough, so one socket.
      {0b11111111, 3, 0b11000000, 0b11010000},  // Preferred devices first, within the group.
      {0b11111111, 6, 0b11111100, 0b11111100},  // Across sockets in any case, so the preferred devices.
  };
  for (const auto& row : rows)
    EXPECT_EQ(chosen_of(t, row.set, row.count, row.liked), row.chosen) << row.count;
}

TEST(Topology, always_chooses_the_requested_number_of_devices) {
  std::mt19937 dice(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Wire> wires;
    const unsigned socket = dice() % 16 + 1;  // Devices below each socket,
    const unsigned bridge = dice() % socket + 1;
    for (unsigned a = 0; a < 32; ++a)
      for (unsigned b = a + 1; b < 32; ++b) {
        const bool near = a / socket == b / socket;
        if (dice() % 4 == 0)
          wires.push_back({a, b,
                           dice() % 8 == 0                                      ? Link::nvlink
                           : near && a % socket / bridge == b % socket / bridge ? Link::bridge
                           : near                                               ? Link::numa
                                                                                : Link::socket});
      }
    const DeviceSet set = dice();
    if (set == 0) continue;
    const unsigned count = static_cast<unsigned>(dice() % static_cast<unsigned>(std::popcount(set)) + 1);
    const DeviceSet chosen = chosen_of(*Topology::of(32, wires), set, count, dice());
    ASSERT_EQ(std::popcount(chosen), static_cast<int>(count));
    ASSERT_EQ(chosen & ~set, 0u);
  }
}

TEST(Topology, is_rejected_with_the_row_if_it_contradicts_itself) {
  const auto refused = [](std::vector<Wire> wires) {
    const auto t = Topology::of(4, wires);
    return t ? std::string("accepted") : t.error().message;
  };
  EXPECT_THAT(refused({{0, 1, Link::nvlink}, {1, 0, Link::bridge}}),
              HasSubstr("row 2: device 1 to device 0: another row has a different link"));
  EXPECT_THAT(refused({{0, 4, Link::nvlink}}),
              HasSubstr("row 1: device 0 to device 4: the node has 4 devices"));
  EXPECT_THAT(refused({{2, 2, Link::nvlink}}), HasSubstr("a device has no link to itself"));
  EXPECT_EQ(refused({{0, 1, Link::nvlink}, {1, 0, Link::nvlink}}), "accepted");
}

TEST(Topology, requires_devices_that_share_a_switch_with_a_third_to_share_it_with_each_other) {
  const auto of = [](std::vector<Wire> wires) {
    const auto t = Topology::of(4, wires);
    return t ? std::string("accepted") : t.error().message;
  };
  EXPECT_EQ(of({{0, 1, Link::bridge}, {1, 2, Link::bridge}, {0, 2, Link::socket}}),
            "topology: devices 0 and 2 share a PCIe switch with device 1, but only the sockets' interconnect "
            "with each other");
  EXPECT_THAT(of({{0, 1, Link::bridge}, {1, 2, Link::bridge}, {0, 2, Link::numa}}),
              HasSubstr("but only a NUMA node with each other"));
  // NVLink can connect any devices, and an unknown pair contradicts no row.
  EXPECT_EQ(of({{0, 1, Link::nvlink}, {1, 2, Link::nvlink}, {0, 2, Link::socket}}), "accepted");
  EXPECT_EQ(of({{0, 1, Link::bridge}, {1, 2, Link::bridge}}), "accepted");
  EXPECT_EQ(of({{0, 1, Link::bridge}, {1, 2, Link::numa}, {0, 2, Link::numa}}), "accepted");
}

TEST(Topology, rates_a_set_by_its_loosest_link) {
  const Topology t = eight();
  EXPECT_EQ(t.loosest(0b00000011), Link::nvlink);
  EXPECT_EQ(t.loosest(0b00000111), Link::numa);
  EXPECT_EQ(t.loosest(0b00010001), Link::socket);
  EXPECT_EQ(t.loosest(0b00000100), Link::nvlink);
}

// The output of nvidia-smi, with an underlined heading, a network device and the legend.
constexpr std::string_view printed =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
    "GPU0\t X \tNV4\tSYS\tPIX\t0-23\nGPU1\tNV4\t X \tSYS\tSYS\t0-23\nGPU2\tSYS\tSYS\t X \tNODE\t24-47\n"
    "NIC0\tPIX\tSYS\tNODE\t X \n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n";

TEST(Topology, is_parsed_from_the_output_of_nvidia_smi) {
  const auto t = Topology::read(printed, 3);
  ASSERT_TRUE(t) << t.error().message;
  EXPECT_EQ(t->link(0, 1), Link::nvlink);
  EXPECT_EQ(t->link(2, 1), Link::socket);
}

TEST(Topology, is_rejected_with_line_and_column_if_the_matrix_contradicts_itself) {
  const auto refused = [](std::string_view matrix, unsigned devices = 2) {
    const auto t = Topology::read(matrix, devices);
    return t ? std::string("accepted") : t.error().message;
  };
  const struct {
    std::string_view matrix;
    const char* message;
  } rows[] = {
      {" GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n",
       "line 3: column GPU0: GPU1 to GPU0 over the sockets' interconnect, but the opposite direction over a "
       "PCIe switch"},
      {" GPU0 GPU1\nGPU0 X PIX\nGPU7 PIX X\n", "line 3: GPU7 is not in the heading"},
      {" GPU0 GPU1 GPU2\n", "line 1: column GPU2: the node has 2 devices"},
      {" GPU0 GPU2\n", "line 1: 'GPU2' found, GPU1 expected"},
      {" GPU0 GPU1\nGPU0 PIX PIX\n", "line 2: column GPU0: 'PIX' is not X, a device's link to itself"},
      {" GPU0 GPU1\nGPU0 X NVX\n", "line 2: column GPU1: 'NVX' is not a link"},
      {" GPU0 GPU1\nGPU0 X\n", "line 2: 1 links, but the heading names 2 devices"},
      {" GPU0 GPU1\nGPU0 X PIX\nGPU0 X PIX\n", "line 3: GPU0 has two lines"},
      {" GPU0 GPU1\nGPU0 X PIX\n", "GPU1 has no line"},
      {" GPU0\nGPU0 X\n", "the heading has 1 devices, but the node has 2"},
      {"", "the heading has 0 devices"},
  };
  for (const auto& row : rows) EXPECT_THAT(refused(row.matrix), HasSubstr(row.message));
}

TEST(Topology, labels_links_as_nvidia_smi_does) {
  EXPECT_EQ(parse_link("NV12"), Link::nvlink);
  EXPECT_EQ(parse_link("PXB"), Link::bridge);
  EXPECT_EQ(parse_link("PHB"), Link::numa);
  EXPECT_EQ(parse_link("SYS"), Link::socket);
  for (const char* wrong : {"", "NV", "NV0", "NVx", "NV123", "X", "sys"})
    EXPECT_FALSE(parse_link(wrong)) << wrong;
}

TEST(Topology, makes_every_strategy_choose_a_connected_pair_if_there_is_one) {
  for (unsigned s = 0; s <= static_cast<unsigned>(Strategy::lookahead); ++s) {
    Engine engine(static_cast<Strategy>(s));
    NodeState node;
    node.model = static_cast<uint8_t>(*engine.fleet().model("A100"));
    node.cpu_free = 64'000;
    DeviceState device;
    device.usable = device.free = 80_GiB;
    const uint32_t n = engine.fleet().add(node, std::vector<DeviceState>(8, device));
    engine.fleet().set_topology(n, eight());
    RequestShape half;
    half.share = {5000};
    ASSERT_TRUE(engine.place(engine.request_class(half)));
    RequestShape pair = half;
    pair.devices = 2, pair.share = whole_device;
    for (int i = 0; i < 2; ++i) {
      const auto assignment = engine.place(engine.request_class(pair));
      ASSERT_TRUE(assignment);
      const auto a = static_cast<unsigned>(std::countr_zero(assignment->devices));
      const auto b = static_cast<unsigned>(31 - std::countl_zero(assignment->devices));
      EXPECT_EQ(eight().link(a, b), Link::nvlink) << text(static_cast<Strategy>(s));
    }
  }
}

}  // namespace
}  // namespace carve::place
