// Determines which devices of a node can serve which part of a request, and chooses a different device for
// each part. Equal parts all fit on the same devices.
//
// A part is never placed where it would leave another part without a device, so a request fits if there is
// any way to place it. With equal parts it is sufficient to count the devices; otherwise a matching is
// computed, with at most 32 parts and devices.
#pragma once

#include <bit>
#include <vector>

#include "core/invariant.h"
#include "place/fleet.h"

namespace carve::place {

using PartSet = uint32_t;  // One bit for each part.

// The devices of a node on which the parts of a request fit.
struct FittingDevices {
  unsigned parts = 0;
  DeviceSet any = 0;               // Those on which at least one part fits.
  std::vector<DeviceSet> of_part;  // Empty if the parts are equal, in which case each fits on all of `any`.

  DeviceSet of(unsigned part) const { return of_part.empty() ? any : of_part[part]; }
};

// A device for each part, all different.
struct PartDevices {
  DeviceSet set = 0;
  std::vector<uint8_t> of_part;  // Empty if the parts are equal, and each device has one of them.

  // Calls act(part, device). Equal parts are in ascending order of the devices.
  template <class Act>
  void each(Act act) const {
    if (!of_part.empty()) {
      for (unsigned part = 0; part < of_part.size(); ++part) act(part, unsigned{of_part[part]});
      return;
    }
    unsigned part = 0;
    for (DeviceSet s = set; s != 0; s &= s - 1) act(part++, static_cast<unsigned>(std::countr_zero(s)));
  }
};

// Returns the fitting devices that are in this set.
FittingDevices within(const FittingDevices&, DeviceSet);

// Returns whether these parts can have different devices from the set.
bool can_serve(const FittingDevices&, PartSet, DeviceSet);
inline PartSet all_parts(unsigned parts) { return static_cast<PartSet>((uint64_t{1} << parts) - 1); }
inline bool can_serve(const FittingDevices& fit) { return can_serve(fit, all_parts(fit.parts), fit.any); }

// Returns the indexes of `RequestShape::parts`, the largest part first. Empty if all parts are equal.
std::vector<uint8_t> largest_first(const RequestShape&);

// Gives equal parts their devices in ascending order.
void arrange(PartDevices&, const RequestShape&);

// Returns the device of the set with the smallest key(part, device). Ties go to the lowest-numbered device.
template <class Key>
unsigned first_of(DeviceSet set, unsigned part, Key key) {
  invariant(set != 0, "the parts can be served");
  auto best = static_cast<unsigned>(std::countr_zero(set));
  if ((set & (set - 1)) == 0) return best;
  auto best_key = key(part, best);
  for (DeviceSet s = set & (set - 1); s != 0; s &= s - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(s));
    if (const auto other = key(part, i); other < best_key) best = i, best_key = other;
  }
  return best;
}

// Returns a device for each part, largest part first: among the devices that leave one for each other part,
// the one with the smallest key(part, device). Requires that the parts can be served.
template <class Key>
PartDevices choose(const RequestShape& shape, const FittingDevices& fit, Key key) {
  PartDevices out;
  if (shape.parts.empty()) {  // Any choice leaves enough devices, because the parts fit on the same ones.
    for (unsigned k = 0; k < fit.parts; ++k) out.set |= DeviceSet{1} << first_of(fit.any & ~out.set, k, key);
    return out;
  }
  PartSet rest = all_parts(fit.parts);
  out.of_part.resize(fit.parts);
  for (const uint8_t part : largest_first(shape)) {
    rest &= ~(PartSet{1} << part);
    for (DeviceSet candidates = fit.of(part) & ~out.set;;) {
      const unsigned best = first_of(candidates, part, key);
      const DeviceSet taken = DeviceSet{1} << best;
      candidates &= ~taken;
      if (!can_serve(fit, rest, fit.any & ~(out.set | taken))) continue;
      out.set |= taken;
      out.of_part[part] = static_cast<uint8_t>(best);
      break;
    }
  }
  arrange(out, shape);
  return out;
}

}  // namespace carve::place
