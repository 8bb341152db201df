// How the devices of one node are connected, as data. Several devices of one slice talk to each other, and
// how fast depends on the pair: 300 GB/s and more over NVLink, 25 to 60 GB/s below one PCIe switch, less
// across host bridges, least between sockets. A request for several devices therefore takes devices of the
// tightest group that has enough room, and of equally tight ones the smallest, so that larger groups stay
// whole. Choosing takes about 1 us, for requests for several devices alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/failure.h"

namespace carve::place {

inline constexpr unsigned max_node_devices = 32;  // On one node: a set of them is one word.
using DeviceSet = uint32_t;

// From the loosest. The words are those that `nvidia-smi topo -m` prints, where it has one for it.
enum class Link : uint8_t {
  socket,  // SYS: across the sockets' interconnect; also what nothing is said about.
  numa,    // NODE, PHB: below one socket.
  bridge,  // PIX, PXB: below one PCIe switch.
  nvlink,  // NV1 ... NV18: that many links, which are not told apart.
};

struct Wire {  // A row of the data.
  unsigned from;
  unsigned to;
  Link link;
};

std::optional<Link> parse_link(std::string_view word);
std::string_view text(Link);  // "NVLink", "a PCIe switch", "a NUMA node", "the sockets' interconnect".

class Topology {
 public:
  // Refused with the row's number, from 1: a device that is not there, a device wired to itself, two rows
  // that contradict each other. PCIe is a tree, so what two devices share with a third they share with each
  // other: of any three pairs that are told and not NVLink, no one is looser than both others.
  static Outcome<Topology> of(unsigned devices, std::span<const Wire> wires);

  // The matrix that `nvidia-smi topo -m` prints: a line of names, then a line for each device (GPU0, GPU1,
  // ...). What stands right of the devices' columns, and lines that begin otherwise, are passed over. Refused
  // with line and column; a matrix says every pair twice, and both times the same.
  static Outcome<Topology> read(std::string_view matrix, unsigned devices);

  Link link(unsigned a, unsigned b) const { return static_cast<Link>(links_[a][b]); }
  Link loosest(DeviceSet) const;  // Between any two of them; of fewer than two: nvlink.

  // `count` of the set, as well connected as can be; `liked` ones first where there is a choice, then the
  // lowest.
  DeviceSet choose(DeviceSet set, unsigned count, DeviceSet liked) const;

 private:
  DeviceSet group(unsigned device, DeviceSet set, Link at_least) const;

  std::array<std::array<uint8_t, max_node_devices>, max_node_devices> links_{};
};

}  // namespace carve::place
