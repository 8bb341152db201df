// The links between the devices of one node. The devices of one slice exchange data at a speed that depends
// on the pair of devices: 300 GB/s and more over NVLink, 25 to 60 GB/s below one PCIe switch, less across
// host bridges, and least between sockets. A request for several devices therefore takes devices of the
// tightest group that is large enough. Among equally tight groups it takes the smallest, so that larger
// groups stay whole. The choice takes about 1 us, and only requests for several devices need it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::place {

inline constexpr unsigned max_node_devices = 32;  // Per node: a set of them is one word.
using DeviceSet = uint32_t;

// Ordered from the loosest link. The comments give the labels of `nvidia-smi topo -m`.
enum class Link : uint8_t {
  socket,  // SYS: across the sockets' interconnect. Also used for an unknown link.
  numa,    // NODE, PHB: below one socket.
  bridge,  // PIX, PXB: below one PCIe switch.
  nvlink,  // NV1 ... NV18. The number of links is ignored.
};

struct Wire {  // A link between two devices.
  unsigned from;
  unsigned to;
  Link link;
};

std::optional<Link> parse_link(std::string_view word);
std::string_view word(Link);  // "NV1", "PIX", "NODE", "SYS": a label that parse_link() maps to this link.
std::string_view text(Link);  // "NVLink", "a PCIe switch", "a NUMA node", "the sockets' interconnect".

class Topology {
 public:
  // Builds a topology. Rejects a missing device, a link of a device to itself, and rows that contradict each
  // other, with the number of the row from 1. PCIe is a tree, so if two devices share a switch or socket with
  // a third, they also share it with each other. Therefore, of the three links between three devices, if none
  // is NVLink, no link may be looser than both others.
  static Outcome<Topology> of(unsigned devices, std::span<const Wire> wires);

  // Parses the matrix that `nvidia-smi topo -m` prints: a line of names, then a line for each device (GPU0,
  // GPU1, ...). Columns after the devices' columns, and other lines, are ignored. Errors name the line and
  // column. A matrix contains every pair twice, and both values must be equal.
  static Outcome<Topology> read(std::string_view matrix, unsigned devices);

  Link link(unsigned a, unsigned b) const { return static_cast<Link>(links_[a][b]); }
  // Returns one line for each of this many devices, with these labels: "X NV1".
  std::vector<std::string> lines(unsigned devices) const;
  Link loosest(DeviceSet) const;  // Among all pairs; nvlink for fewer than two devices.

  // Returns the members of the tightest group that can serve the request. Ties go to the smallest group, and
  // then to the group with the most devices of `liked`. Returns the set itself if no smaller group can serve
  // the request.
  DeviceSet tightest(DeviceSet set, DeviceSet liked, const std::function<bool(DeviceSet)>& can_serve) const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  DeviceSet group(unsigned device, DeviceSet set, Link at_least) const;

  std::array<std::array<uint8_t, max_node_devices>, max_node_devices> links_{};
};

}  // namespace carve::place
