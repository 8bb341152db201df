#include "place/part_devices.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace carve::place {
namespace {

// A matching of parts to devices that is extended by one part at a time (Kuhn's algorithm).
class Matching {
 public:
  Matching(const FittingDevices& fit, DeviceSet allowed) : fit_(fit), allowed_(allowed) { on_.fill(no_part); }

  // Adds the part, moving other parts if necessary. Returns whether it was added.
  bool add(unsigned part) {
    DeviceSet tried = 0;
    return move(part, tried);
  }

 private:
  static constexpr uint8_t no_part = UINT8_MAX;

  // The recursion depth is at most the number of parts.
  bool move(unsigned part, DeviceSet& tried) {
    for (DeviceSet s = fit_.of(part) & allowed_ & ~tried; s != 0; s = s & (s - 1) & ~tried) {
      const auto device = static_cast<unsigned>(std::countr_zero(s));
      tried |= DeviceSet{1} << device;
      if (on_[device] != no_part && !move(on_[device], tried)) continue;
      on_[device] = static_cast<uint8_t>(part);
      return true;
    }
    return false;
  }

  const FittingDevices& fit_;
  DeviceSet allowed_;
  std::array<uint8_t, max_node_devices> on_;
};

}  // namespace

FittingDevices within(const FittingDevices& fit, DeviceSet set) {
  FittingDevices out = fit;
  out.any &= set;
  for (DeviceSet& devices : out.of_part) devices &= set;
  return out;
}

bool can_serve(const FittingDevices& fit, PartSet parts, DeviceSet allowed) {
  const int count = std::popcount(parts);
  if (fit.of_part.empty()) return std::popcount(fit.any & allowed) >= count;
  bool has_each_enough = true;
  DeviceSet any = 0;
  for (PartSet s = parts; s != 0; s &= s - 1) {
    const DeviceSet own = fit.of(static_cast<unsigned>(std::countr_zero(s))) & allowed;
    has_each_enough &= std::popcount(own) >= count;
    any |= own;
  }
  if (has_each_enough) return true;
  if (std::popcount(any) < count) return false;
  Matching matching(fit, allowed);
  for (PartSet s = parts; s != 0; s &= s - 1)
    if (!matching.add(static_cast<unsigned>(std::countr_zero(s)))) return false;
  return true;
}

std::vector<uint8_t> largest_first(const RequestShape& shape) {
  std::vector<uint8_t> out(shape.parts.size());
  std::iota(out.begin(), out.end(), uint8_t{0});
  std::ranges::stable_sort(out, [&](uint8_t a, uint8_t b) { return shape.parts[a] > shape.parts[b]; });
  return out;
}

void arrange(PartDevices& devices, const RequestShape& shape) {
  auto& of = devices.of_part;
  for (unsigned i = 0; i < of.size(); ++i)
    for (unsigned j = i + 1; j < of.size(); ++j)
      if (of[j] < of[i] && shape.parts[i] == shape.parts[j]) std::swap(of[i], of[j]);
}

}  // namespace carve::place
