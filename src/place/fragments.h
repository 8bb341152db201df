// Measures how much of a node's free capacity the typical requests can use, and how a placement changes that.
//
// The amount a(g) of a device is its free capacity in basis points of a device: compute, or compute and
// memory weighted by how much of each is requested (docs/decisions/0004-fragments-in-two-dimensions.md). For
// a type m, the node's fragment is T = sum of a(g) over all devices if m cannot run on the node, otherwise
// the sum over the devices that cannot serve m. So F = sum of p_m * T minus the useful amount, and
//  useful = sum over the types m that run there of p_m * (sum of a(g) over the devices that serve m). A type
//  for one device runs on any device that serves it, so its part of `useful` is a sum over devices. One read
//  of a table of (model, memory, compute, CPU) levels gives the weight of all such types that a device
//  serves. Types for several devices are counted one by one. Scoring a node of eight devices takes about 60
//  ns.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/invariant.h"
#include "place/fleet.h"
#include "place/rules.h"
#include "place/workload.h"

namespace carve::place {

class Fragments {
 public:
  void build(const Fleet&, const WorkloadModel&);

  // The factor of a type's weight, which is the sum of all weights, including those of requests for no
  // device.
  int64_t all() const { return all_; }

  int64_t amount(const DeviceState& c) const {
    const int64_t compute = compute_weight_ * c.free_share.basis_points;
    if (memory_weight_ == 0 || c.usable.count == 0) return compute >> 10;
    const auto memory =
        static_cast<int64_t>(static_cast<unsigned __int128>(c.free.count) * 10000 / c.usable.count);
    return (compute + memory_weight_ * memory) >> 10;
  }

  // The gradient: F before minus F after a placement on one fitting device or, for a request for several, on
  // the best set of devices, in basis points * 2^30. Higher is better.
  struct Step {
    int64_t gradient = 0;
    PartDevices devices;
  };
  // Calls each(step) for the alternatives on this node, in ascending order of the devices.
  template <class F>
  void alternatives(const Fleet& fleet, uint32_t n, const RequestShape& shape, const FittingDevices& fitting,
                    F each) const;

  // Returns the useful amount. For tests and reports.
  int64_t useful(const Fleet& fleet, uint32_t n) const;
  int64_t fragment(const Fleet& fleet, uint32_t n) const;

 private:
  static constexpr unsigned max_levels = 128;  // Levels of compute, memory or CPU.
  // Maximum number of distinct (compute, memory) pairs of types for several devices.
  static constexpr unsigned max_multi_levels = 8;

  struct Multi {  // A type for several devices.
    unsigned level;
    unsigned devices;
    unsigned cpu_level;
    Models models;
    int64_t weight;
  };
  struct Need {  // The need on one device, with the memory per model.
    Share share;
    std::array<uint64_t, max_models> memory{};
  };
  struct Tally {  // The number of devices that serve a level.
    int64_t count = 0;
    int64_t amount = 0;
  };
  struct Comparison {  // The sums that all alternatives of one node and request share.
    const RequestShape& shape;
    std::span<const DeviceState> devices;
    unsigned model;
    unsigned cpu_after;                            // CPU level after the request.
    int64_t before = 0;                            // The useful amount now.
    int64_t rest = 0;                              // Sum of `part`.
    std::array<int64_t, max_node_devices> part{};  // Part of each device in `useful`, with the remaining CPU.
    std::array<Tally, max_multi_levels> tally{};
  };

  // These functions are the steps of build(). `sample` holds an unused device of each model.
  //
  // Collects the distinct needs of the types in `shares`, `cpu_` and `memory_`. Returns the types that need
  // devices. A type that needs one level too many is left out; the rarest types come last.
  WorkloadModel collect_levels(std::span<const DeviceState> sample, const WorkloadModel& workload,
                               std::vector<uint32_t>& shares);
  // Sorts the levels and numbers them.
  void settle_levels(unsigned models, std::vector<uint32_t>& shares);
  // Sets the weight of each dimension to its part of the demand.
  void weigh_dimensions(const DeviceState& device, const WorkloadModel& used);
  // Adds a type for several devices.
  void add_multi(std::span<const DeviceState> sample, const Type& type);
  // Adds a type for one device to the table.
  void add_served(std::span<const DeviceState> sample, const Type& type);

  unsigned cpu_level(uint32_t cpu) const;
  unsigned memory_level(unsigned model, uint64_t free) const;
  const int64_t* row(unsigned model, const DeviceState& c) const {
    return &served_[((model * memory_levels_ + memory_level(model, c.free.count)) * share_levels_ +
                     share_level_[c.free_share.basis_points]) *
                    cpu_levels_];
  }
  Comparison comparison(const Fleet& fleet, uint32_t n, const RequestShape& shape) const;
  // Returns the gradient of a placement on these devices.
  Step step(const Comparison& now, const PartDevices& devices) const;
  // Returns whether an earlier fitting device has the same state as device i, so that both give the same
  // step.
  static bool repeats_earlier(const Comparison& now, DeviceSet fitting, unsigned i);
  // Chooses the devices whose own part of `useful` decreases least, in ascending order.
  PartDevices least_loss(const Comparison& now, const FittingDevices& fitting) const;
  // Returns the device after a part of the request was placed on it.
  static DeviceState reduced(DeviceState device, const RequestShape& shape, unsigned part) {
    device.free = minus(device.free, need(shape, part, device));
    device.free_share.basis_points -= needed_share(shape, part).basis_points;
    return device;
  }
  bool serves(const DeviceState& c, unsigned model, const Need& need) const {
    return c.free_share >= need.share && c.free.count >= need.memory[model];
  }
  int64_t multi(unsigned model, unsigned cpu, const Tally* tally) const {
    int64_t sum = 0;
    for (const Multi& m : multi_)
      if ((m.models >> model & 1) != 0 && m.cpu_level <= cpu && tally[m.level].count >= m.devices)
        sum += m.weight * tally[m.level].amount;
    return sum;
  }

  int64_t all_ = 0;
  int64_t compute_weight_ = 1024;  // In 1/1024; the two weights add up to 1024.
  int64_t memory_weight_ = 0;
  unsigned share_levels_ = 1;
  unsigned memory_levels_ = 1;
  unsigned cpu_levels_ = 1;
  std::array<uint8_t, 10001> share_level_{};
  std::vector<uint32_t> cpu_;                             // Ascending; cpu_level() counts the values up to a
                                                          // given one.
  std::array<std::vector<uint64_t>, max_models> memory_;  // By model, ascending, with equal lengths.
  std::vector<int64_t> served_ = std::vector<int64_t>(max_models);  // [model][memory][share][cpu] -> weight.
  std::vector<Multi> multi_;
  std::vector<Need> multi_needs_;
};

inline Fragments::Comparison Fragments::comparison(const Fleet& fleet, uint32_t n,
                                                   const RequestShape& shape) const {
  const NodeState& node = fleet.node(n);
  invariant(shape.cpu_milli <= node.cpu_free);
  const unsigned cpu_before = cpu_level(node.cpu_free);
  Comparison now{.shape = shape,
                 .devices = fleet.devices(n),
                 .model = node.model,
                 .cpu_after = cpu_level(node.cpu_free - shape.cpu_milli)};
  for (unsigned i = 0; i < now.devices.size(); ++i) {
    const DeviceState& device = now.devices[i];
    const int64_t a = amount(device);
    const int64_t* weights = row(node.model, device);
    now.before += a * weights[cpu_before];
    now.part[i] = a * weights[now.cpu_after];
    now.rest += now.part[i];
    for (size_t l = 0; l < multi_needs_.size(); ++l)
      if (serves(device, node.model, multi_needs_[l])) ++now.tally[l].count, now.tally[l].amount += a;
  }
  if (!multi_.empty()) now.before += multi(node.model, cpu_before, now.tally.data());
  return now;
}

inline Fragments::Step Fragments::step(const Comparison& now, const PartDevices& devices) const {
  int64_t after = now.rest;
  int64_t gone = 0;
  std::array<Tally, max_multi_levels> then;
  for (size_t l = 0; l < multi_needs_.size(); ++l) then[l] = now.tally[l];
  devices.each([&](unsigned part, unsigned i) {
    const DeviceState& device = now.devices[i];
    const DeviceState c = reduced(device, now.shape, part);
    const int64_t a = amount(device);
    const int64_t b = amount(c);
    gone += a - b;
    after += b * row(now.model, c)[now.cpu_after] - now.part[i];
    for (size_t l = 0; l < multi_needs_.size(); ++l) {
      if (serves(device, now.model, multi_needs_[l])) --then[l].count, then[l].amount -= a;
      if (serves(c, now.model, multi_needs_[l])) ++then[l].count, then[l].amount += b;
    }
  });
  if (!multi_.empty()) after += multi(now.model, now.cpu_after, then.data());
  return {all_ * gone - (now.before - after), devices};
}

inline bool Fragments::repeats_earlier(const Comparison& now, DeviceSet fitting, unsigned i) {
  for (DeviceSet e = fitting & ((DeviceSet{1} << i) - 1); e != 0; e &= e - 1) {
    const DeviceState& earlier = now.devices[static_cast<unsigned>(__builtin_ctz(e))];
    const DeviceState& device = now.devices[i];
    if (earlier.free_share == device.free_share && earlier.free == device.free &&
        earlier.usable == device.usable)
      return true;
  }
  return false;
}

inline PartDevices Fragments::least_loss(const Comparison& now, const FittingDevices& fitting) const {
  return choose(now.shape, fitting, [&](unsigned part, unsigned i) {
    const DeviceState c = reduced(now.devices[i], now.shape, part);
    return now.part[i] - amount(c) * row(now.model, c)[now.cpu_after] -
           all_ * (amount(now.devices[i]) - amount(c));
  });
}

template <class F>
void Fragments::alternatives(const Fleet& fleet, uint32_t n, const RequestShape& shape,
                             const FittingDevices& fitting, F each) const {
  invariant(shape.devices == 0 || fitting.any != 0);
  const Comparison now = comparison(fleet, n, shape);
  if (shape.devices == 0) {
    each(step(now, {}));
  } else if (shape.devices == 1) {
    for (DeviceSet s = fitting.any; s != 0; s &= s - 1) {
      const auto i = static_cast<unsigned>(__builtin_ctz(s));
      if (!repeats_earlier(now, fitting.any, i)) each(step(now, {.set = s & -s}));
    }
  } else {
    each(step(now, least_loss(now, fitting)));
  }
}

}  // namespace carve::place
