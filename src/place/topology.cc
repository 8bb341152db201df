#include "place/topology.h"

#include <algorithm>
#include <bit>

#include "core/invariant.h"

namespace carve::place {

std::optional<Link> parse_link(std::string_view word) {
  if (word == "SYS") return Link::socket;
  if (word == "NODE" || word == "PHB") return Link::numa;
  if (word == "PIX" || word == "PXB") return Link::bridge;
  if (word.size() < 3 || word.size() > 4 || !word.starts_with("NV")) return std::nullopt;
  unsigned links = 0;
  for (const char c : word.substr(2)) {
    if (c < '0' || c > '9') return std::nullopt;
    links = links * 10 + static_cast<unsigned>(c - '0');
  }
  return links == 0 ? std::nullopt : std::optional(Link::nvlink);
}

std::string_view word(Link link) {
  switch (link) {
    case Link::socket: return "SYS";
    case Link::numa: return "NODE";
    case Link::bridge: return "PIX";
    case Link::nvlink: return "NV1";
  }
  return "";
}

std::string_view text(Link link) {
  switch (link) {
    case Link::socket: return "the sockets' interconnect";
    case Link::numa: return "a NUMA node";
    case Link::bridge: return "a PCIe switch";
    case Link::nvlink: return "NVLink";
  }
  return "";
}

std::vector<std::string> Topology::lines(unsigned devices) const {
  invariant(devices <= max_node_devices);
  std::vector<std::string> out(devices);
  for (unsigned a = 0; a < devices; ++a)
    for (unsigned b = 0; b < devices; ++b)
      out[a] += fmt::format("{}{}", b == 0 ? "" : " ", a == b ? "X" : word(link(a, b)));
  return out;
}

Outcome<Topology> Topology::of(unsigned devices, std::span<const Wire> wires) {
  Topology out;
  std::array<DeviceSet, max_node_devices> told{};
  for (size_t row = 0; row < wires.size(); ++row) {
    const auto [a, b, link] = wires[row];
    const auto wrong = [&](std::string_view why) {
      return failure(FailureKind::invalid_argument, "topology, row {}: device {} to device {}: {}", row + 1,
                     a, b, why);
    };
    if (devices > max_node_devices || a >= devices || b >= devices)
      return wrong(fmt::format("the node has {} devices, numbered from 0", devices));
    if (a == b) return wrong("a device has no link to itself");
    const auto level = static_cast<uint8_t>(link);
    if ((told[a] >> b & 1) != 0 && out.links_[a][b] != level)
      return wrong("another row has a different link");
    out.links_[a][b] = out.links_[b][a] = level;
    told[a] |= DeviceSet{1} << b;
    told[b] |= DeviceSet{1} << a;
  }
  const auto pcie = [&](unsigned a, unsigned b) {
    return (told[a] >> b & 1) != 0 && out.link(a, b) != Link::nvlink;
  };
  for (unsigned a = 0; a < devices; ++a)
    for (unsigned b = 0; b < devices; ++b)
      for (unsigned by = 0; by < devices; ++by)
        if (pcie(a, b) && pcie(a, by) && pcie(by, b) &&
            out.link(a, b) < std::min(out.link(a, by), out.link(by, b)))
          return failure(FailureKind::invalid_argument,
                         "topology: devices {} and {} share {} with device {}, but only {} with each other",
                         a, b, text(std::min(out.link(a, by), out.link(by, b))), by, text(out.link(a, b)));
  return out;
}

Link Topology::loosest(DeviceSet set) const {
  Link out = Link::nvlink;
  for (; set != 0; set &= set - 1)
    for (DeviceSet rest = set & (set - 1); rest != 0; rest &= rest - 1)
      out = std::min(out, link(static_cast<unsigned>(std::countr_zero(set)),
                               static_cast<unsigned>(std::countr_zero(rest))));
  return out;
}

// Returns the members of the set that `device` reaches over links that are at least this tight.
DeviceSet Topology::group(unsigned device, DeviceSet set, Link at_least) const {
  invariant(device < max_node_devices && (set >> device & 1) != 0);
  DeviceSet reached = DeviceSet{1} << device;
  for (DeviceSet fresh = reached; fresh != 0;) {
    const auto from = static_cast<unsigned>(std::countr_zero(fresh));
    fresh &= fresh - 1;
    for (DeviceSet rest = set & ~reached; rest != 0; rest &= rest - 1) {
      const auto to = static_cast<unsigned>(std::countr_zero(rest));
      if (link(from, to) < at_least) continue;
      reached |= DeviceSet{1} << to;
      fresh |= DeviceSet{1} << to;
    }
  }
  invariant((reached & ~set) == 0);
  return reached;
}

DeviceSet Topology::tightest(DeviceSet set, DeviceSet liked,
                             const std::function<bool(DeviceSet)>& can_serve) const {
  for (const Link tight : {Link::nvlink, Link::bridge, Link::numa}) {
    DeviceSet best = 0;
    for (DeviceSet rest = set; rest != 0;) {
      const DeviceSet all = group(static_cast<unsigned>(std::countr_zero(rest)), set, tight);
      rest &= ~all;
      if (!can_serve(all)) continue;
      const auto better = [&](DeviceSet a, DeviceSet b) {
        if (std::popcount(a) != std::popcount(b)) return std::popcount(a) < std::popcount(b);
        return std::popcount(a & liked) > std::popcount(b & liked);
      };
      if (best == 0 || better(all, best)) best = all;
    }
    if (best != 0) return best;
  }
  return set;
}

}  // namespace carve::place
