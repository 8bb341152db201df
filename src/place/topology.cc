#include "place/topology.h"

#include <algorithm>
#include <bit>

#include "place/order.h"

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

std::string_view text(Link link) {
  switch (link) {
    case Link::socket: return "the sockets' interconnect";
    case Link::numa: return "a NUMA node";
    case Link::bridge: return "a PCIe switch";
    case Link::nvlink: return "NVLink";
  }
  return "";
}

Outcome<Topology> Topology::of(unsigned cards, std::span<const Wire> wires) {
  Topology out;
  std::array<CardSet, most_cards> told{};
  for (size_t row = 0; row < wires.size(); ++row) {
    const auto [a, b, link] = wires[row];
    const auto wrong = [&](std::string_view why) {
      return failure(FailureKind::bad_request, "topology, row {}: card {} to card {}: {}", row + 1, a, b,
                     why);
    };
    if (cards > most_cards || a >= cards || b >= cards)
      return wrong(fmt::format("the node has {} cards, counted from 0", cards));
    if (a == b) return wrong("a card is not wired to itself");
    const auto level = static_cast<uint8_t>(link);
    if ((told[a] >> b & 1) != 0 && out.links_[a][b] != level) return wrong("another row says otherwise");
    out.links_[a][b] = out.links_[b][a] = level;
    told[a] |= CardSet{1} << b;
    told[b] |= CardSet{1} << a;
  }
  const auto pcie = [&](unsigned a, unsigned b) {
    return (told[a] >> b & 1) != 0 && out.link(a, b) != Link::nvlink;
  };
  for (unsigned a = 0; a < cards; ++a)
    for (unsigned b = 0; b < cards; ++b)
      for (unsigned by = 0; by < cards; ++by)
        if (pcie(a, b) && pcie(a, by) && pcie(by, b) &&
            out.link(a, b) < std::min(out.link(a, by), out.link(by, b)))
          return failure(FailureKind::bad_request,
                         "topology: cards {} and {} share {} with card {}, and {} with each other", a, b,
                         text(std::min(out.link(a, by), out.link(by, b))), by, text(out.link(a, b)));
  return out;
}

Link Topology::loosest(CardSet set) const {
  Link out = Link::nvlink;
  for (; set != 0; set &= set - 1)
    for (CardSet rest = set & (set - 1); rest != 0; rest &= rest - 1)
      out = std::min(out, link(static_cast<unsigned>(std::countr_zero(set)),
                               static_cast<unsigned>(std::countr_zero(rest))));
  return out;
}

// All of the set that `card` reaches over links at least so tight.
CardSet Topology::group(unsigned card, CardSet set, Link at_least) const {
  CardSet reached = CardSet{1} << card;
  for (CardSet fresh = reached; fresh != 0;) {
    const auto from = static_cast<unsigned>(std::countr_zero(fresh));
    fresh &= fresh - 1;
    for (CardSet rest = set & ~reached; rest != 0; rest &= rest - 1) {
      const auto to = static_cast<unsigned>(std::countr_zero(rest));
      if (link(from, to) < at_least) continue;
      reached |= CardSet{1} << to;
      fresh |= CardSet{1} << to;
    }
  }
  return reached;
}

CardSet Topology::choose(CardSet set, unsigned count, CardSet liked) const {
  const auto taken = [&](CardSet group) {
    const CardSet first = lowest(group & liked, count);
    return first | lowest(group & ~first, count - static_cast<unsigned>(std::popcount(first)));
  };
  for (const Link tight : {Link::nvlink, Link::bridge, Link::numa}) {
    CardSet best = 0;
    for (CardSet rest = set; rest != 0;) {
      const CardSet all = group(static_cast<unsigned>(std::countr_zero(rest)), set, tight);
      rest &= ~all;
      if (std::popcount(all) < static_cast<int>(count)) continue;
      const auto better = [&](CardSet a, CardSet b) {
        if (std::popcount(a) != std::popcount(b)) return std::popcount(a) < std::popcount(b);
        return std::popcount(a & liked) > std::popcount(b & liked);
      };
      if (best == 0 || better(all, best)) best = all;
    }
    if (best != 0) return taken(best);
  }
  return taken(set);
}

}  // namespace carve::place
