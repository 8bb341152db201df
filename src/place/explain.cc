#include "place/explain.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

constexpr std::string_view behind_rules[] = {"devices of different sizes", "a device for each part"};

// Returns the rule under which a node that cannot serve the request is counted: the first broken rule of the
// node, or otherwise the last row that any of its rejected devices reached. If there are enough devices for
// each part, either their sizes differ (needs_one_size()), or several parts fit only on the same devices.
// These two cases are the last two rows.
size_t broken_row(const Fleet& fleet, uint32_t n, const RequestShape& shape) {
  const NodeState& node = fleet.node(n);
  const auto of_node = node_rules();
  for (size_t row = 0; row < of_node.size(); ++row)
    if (!of_node[row].holds(node, shape)) return row;
  const auto of_device = device_rules();
  const auto devices = fleet.devices(n);
  for (unsigned part = 0; part < std::max<size_t>(1, shape.parts.size()); ++part) {
    const RequestShape one = shape_of_part(shape, part);
    std::optional<size_t> furthest;
    size_t fit = 0;
    for (unsigned i = 0; i < devices.size(); ++i) {
      size_t row = 0;
      while (row < of_device.size() && of_device[row].holds(devices[i], node.first + i, one)) ++row;
      if (row == of_device.size())
        ++fit;
      else
        furthest = std::max(furthest.value_or(0), row);
    }
    if (fit >= (shape.parts.empty() ? shape.devices : 1u)) continue;
    invariant(furthest.has_value(), "a rule refuses the node");
    return of_node.size() + *furthest;
  }
  invariant(needs_one_size(shape) || !shape.parts.empty(), "a rule refuses the node");
  return of_node.size() + of_device.size() + !shape.parts.empty();
}

std::string_view rule_name(size_t row) {
  const auto of_node = node_rules();
  if (row < of_node.size()) return of_node[row].name;
  row -= of_node.size();
  return row < device_rules().size() ? device_rules()[row].name : behind_rules[row - device_rules().size()];
}

// Among the nodes on which `less` fits, returns the node with the largest `amount` free on the requested
// number of devices, together with that amount.
template <class Amount>
std::optional<std::pair<uint32_t, uint64_t>> most(const Fleet& fleet, const RequestShape& less,
                                                  Amount amount) {
  invariant(less.devices != 0);
  std::optional<std::pair<uint32_t, uint64_t>> best;
  for (uint32_t n = 0; n < fleet.nodes(); ++n) {
    const auto fit = fitting(fleet, n, less);
    if (!fit) continue;
    std::array<uint64_t, max_node_devices> amounts;
    unsigned count = 0;
    for (DeviceSet set = fit->any; set != 0; set &= set - 1)
      amounts[count++] = amount(fleet.devices(n)[static_cast<unsigned>(std::countr_zero(set))]);
    std::ranges::sort(amounts.begin(), amounts.begin() + count, std::greater{});
    invariant(count >= less.devices);  // Only the devices in `amounts` have bits.
    const uint64_t piece = amounts[less.devices - 1u];
    if (!best || piece > best->second) best = {n, piece};
  }
  return best;
}

}  // namespace

std::string_view broken_rule(const Fleet& fleet, uint32_t n, const RequestShape& shape) {
  return rule_name(broken_row(fleet, n, shape));
}

Refusal explain(const Fleet& fleet, const RequestShape& shape) {
  Refusal out;
  out.nodes = fleet.nodes();
  std::vector<uint32_t> counts(node_rules().size() + device_rules().size() + std::size(behind_rules));
  for (uint32_t n = 0; n < fleet.nodes(); ++n) {
    if (fitting(fleet, n, shape))
      ++out.serving;
    else
      ++counts[broken_row(fleet, n, shape)];
  }
  invariant(std::accumulate(counts.begin(), counts.end(), out.serving) == out.nodes, "each node counts once");
  for (size_t row = 0; row < counts.size(); ++row)
    if (counts[row] != 0) out.counts.push_back({rule_name(row), counts[row]});
  std::ranges::stable_sort(out.counts, std::greater{}, &Refusal::Count::nodes);

  out.message = fmt::format("{}/{} nodes can serve", out.serving, out.nodes);
  for (size_t i = 0; i < out.counts.size(); ++i)
    out.message += fmt::format("{}{} {}", i == 0 ? ": " : ", ", out.counts[i].nodes, out.counts[i].rule);
  if (out.serving != 0) return out;
  const auto advise = [&](const std::string& what) { out.advice += out.advice.empty() ? what : "; " + what; };

  if (shape.devices != 0 && !shape.exclusive && shape.memory.count != 0) {
    RequestShape less = shape;
    less.memory = min_memory;
    less.isolated = false;  // Contexts and the number of slices are checked below, with the real amount.
    const auto free_memory = [](const DeviceState& c) { return c.free.count; };
    if (const auto piece = most(fleet, less, free_memory)) {
      less.share = {};
      // A device without enough free compute may have more free memory, and the user sees that number too.
      const bool more_elsewhere = most(fleet, less, free_memory)->second > piece->second;
      less = shape;
      less.memory = {std::min(piece->second, shape.memory.count) & ~((uint64_t{1} << 20) - 1)};
      if (less.memory >= min_memory && less.memory < shape.memory && fitting(fleet, piece->first, less)) {
        out.nearest.push_back({piece->first, less.memory, {}, {}});
        advise(fmt::format("the largest free block{} is {}: the request fits with {} less{}",
                           more_elsewhere ? " with enough free compute" : "", text(less.memory).c_str(),
                           text(minus(shape.memory, less.memory)).c_str(),
                           shape.devices > 1 ? " on each device" : ""));
      }
    }
  }
  if (shape.devices != 0 && !shape.exclusive && shape.share.basis_points != 0) {
    RequestShape less = shape;
    less.share = {};
    if (const auto part = most(fleet, less, [](const DeviceState& c) { return c.free_share.basis_points; });
        part && part->second != 0) {
      const Share share{static_cast<uint32_t>(part->second)};
      out.nearest.push_back({part->first, {}, share, {}});
      advise(fmt::format("the request fits with at most {} of the compute", text(share).c_str()));
    }
  }
  if (shape.cpu_milli != 0) {
    RequestShape less = shape;
    less.cpu_milli = 0;
    std::optional<uint32_t> best;
    for (uint32_t n = 0; n < fleet.nodes(); ++n)
      if (fitting(fleet, n, less) && (!best || fleet.node(n).cpu_free > fleet.node(*best).cpu_free)) best = n;
    if (best) {
      out.nearest.push_back({*best, {}, {}, fleet.node(*best).cpu_free});
      advise(fmt::format("the request fits with at most {}m of CPU", fleet.node(*best).cpu_free));
    }
  }
  if (!out.advice.empty()) out.message += "; " + out.advice;
  return out;
}

}  // namespace carve::place
