#include "place/fragments.h"

#include <algorithm>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

// Returns the memory that a type needs on a model, in whichever form it is specified. `device` is an unused
// device of that model.
Bytes memory_of(const RequestShape& a, const DeviceState& device) { return need(a, device); }

template <class T>
void settle(std::vector<T>& levels) {
  std::ranges::sort(levels);
  levels.erase(std::ranges::unique(levels).begin(), levels.end());
}

template <class T>
unsigned not_above(const std::vector<T>& levels, T value) {
  unsigned count = 0;
  if (levels.size() <= 8) {
    for (const T level : levels) count += level <= value;
    return count;
  }
  return static_cast<unsigned>(std::ranges::upper_bound(levels, value) - levels.begin());
}

}  // namespace

unsigned Fragments::cpu_level(uint32_t cpu) const { return not_above(cpu_, cpu); }

unsigned Fragments::memory_level(unsigned model, uint64_t free) const {
  return memory_levels_ == 1 ? 0 : not_above(memory_[model], free);
}

namespace {

// Returns an unused device of each model, or an empty one if no node has the model.
std::vector<DeviceState> sample_devices(const Fleet& fleet) {
  std::vector<DeviceState> sample(std::max(1u, fleet.models()));
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    if (fleet.node(n).devices != 0) sample[fleet.node(n).model] = fleet.devices(n)[0];
  return sample;
}

// Returns the memory that a type requests on all its devices, multiplied by its weight, in basis points of a
// device.
int64_t weighted_memory(const Type& type, const DeviceState& device) {
  if (device.usable.count == 0) return 0;
  return (type.weight >> 10) * type.shape.devices *
         static_cast<int64_t>(static_cast<unsigned __int128>(memory_of(type.shape, device).count) * 10000 /
                              device.usable.count);
}

}  // namespace

void Fragments::build(const Fleet& fleet, const WorkloadModel& workload) {
  const std::vector<DeviceState> sample = sample_devices(fleet);
  std::vector<uint32_t> shares;
  const WorkloadModel used = collect_levels(sample, workload, shares);
  settle_levels(static_cast<unsigned>(sample.size()), shares);
  weigh_dimensions(sample[0], used);
  served_.assign(sample.size() * memory_levels_ * share_levels_ * cpu_levels_, 0);
  multi_.clear();
  multi_needs_.clear();
  for (const Type& type : used) {
    if (type.shape.devices > 1) add_multi(sample, type);
    if (type.shape.devices == 1) add_served(sample, type);
  }
}

WorkloadModel Fragments::collect_levels(std::span<const DeviceState> sample, const WorkloadModel& workload,
                                        std::vector<uint32_t>& shares) {
  const auto is_one_too_many = [](const auto& levels, auto value) {
    return std::ranges::find(levels, value) == levels.end() && levels.size() >= max_levels - 1;
  };
  const auto add = [](auto& levels, auto value) {
    if (std::ranges::find(levels, value) == levels.end()) levels.push_back(value);
  };
  cpu_.clear();
  for (auto& levels : memory_) levels.clear();
  all_ = 0;
  WorkloadModel used;
  for (const Type& type : workload) {
    const RequestShape& a = type.shape;
    bool fits = !is_one_too_many(shares, needed_share(a).basis_points) && !is_one_too_many(cpu_, a.cpu_milli);
    for (unsigned t = 0; t < sample.size() && fits; ++t)
      fits = !is_one_too_many(memory_[t], memory_of(a, sample[t]).count);
    if (!fits) continue;
    all_ += type.weight;
    if (a.devices == 0) continue;
    used.push_back(type);
    add(shares, needed_share(a).basis_points);
    add(cpu_, a.cpu_milli);
    for (unsigned t = 0; t < sample.size(); ++t) add(memory_[t], memory_of(a, sample[t]).count);
  }
  return used;
}

void Fragments::settle_levels(unsigned models, std::vector<uint32_t>& shares) {
  settle(shares);
  settle(cpu_);
  memory_levels_ = 1;
  for (unsigned t = 0; t < models; ++t) {
    settle(memory_[t]);
    // A single level that every request reaches makes no difference and is not counted.
    if (!(memory_[t].size() <= 1 && (memory_[t].empty() || memory_[t][0] == 0)))
      memory_levels_ = std::max(memory_levels_, static_cast<unsigned>(memory_[t].size()) + 1);
  }
  share_levels_ = static_cast<unsigned>(shares.size()) + 1;
  cpu_levels_ = static_cast<unsigned>(cpu_.size()) + 1;
  invariant(share_levels_ <= max_levels && memory_levels_ <= max_levels && cpu_levels_ <= max_levels);
  for (uint32_t r = 0; r <= 10000; ++r) share_level_[r] = static_cast<uint8_t>(not_above(shares, r));
}

void Fragments::weigh_dimensions(const DeviceState& device, const WorkloadModel& used) {
  int64_t compute_asked = 0;
  int64_t memory_asked = 0;
  for (const Type& type : used) {
    compute_asked += (type.weight >> 10) * type.shape.devices * needed_share(type.shape).basis_points;
    memory_asked += weighted_memory(type, device);
  }
  memory_weight_ =
      compute_asked + memory_asked == 0 ? 0 : memory_asked * 1024 / (compute_asked + memory_asked);
  compute_weight_ = 1024 - memory_weight_;
  invariant(compute_weight_ >= 0 && memory_weight_ >= 0, "an amount is never negative");
}

void Fragments::add_multi(std::span<const DeviceState> sample, const Type& type) {
  const RequestShape& a = type.shape;
  Need needed{needed_share(a), {}};
  for (unsigned t = 0; t < sample.size(); ++t) needed.memory[t] = memory_of(a, sample[t]).count;
  const auto known = std::ranges::find_if(multi_needs_, [&](const Need& other) {
    return other.share == needed.share && other.memory == needed.memory;
  });
  if (known == multi_needs_.end() && multi_needs_.size() == max_multi_levels) return;
  const auto level = static_cast<unsigned>(known - multi_needs_.begin());
  if (known == multi_needs_.end()) multi_needs_.push_back(needed);
  invariant(level < multi_needs_.size() && level < max_multi_levels);
  multi_.push_back({level, a.devices, cpu_level(a.cpu_milli), a.models, type.weight});
}

void Fragments::add_served(std::span<const DeviceState> sample, const Type& type) {
  const RequestShape& a = type.shape;
  const unsigned cpu = cpu_level(a.cpu_milli);
  const unsigned share = share_level_[needed_share(a).basis_points];
  for (unsigned t = 0; t < sample.size(); ++t) {
    if ((a.models >> t & 1) == 0) continue;
    for (unsigned w = memory_level(t, memory_of(a, sample[t]).count); w < memory_levels_; ++w)
      for (unsigned r = share; r < share_levels_; ++r)
        for (unsigned c = cpu; c < cpu_levels_; ++c)
          served_[((size_t{t} * memory_levels_ + w) * share_levels_ + r) * cpu_levels_ + c] += type.weight;
  }
}

int64_t Fragments::useful(const Fleet& fleet, uint32_t n) const {
  invariant(n < fleet.nodes());
  const NodeState& node = fleet.node(n);
  const unsigned cpu = cpu_level(node.cpu_free);
  std::array<Tally, max_multi_levels> tally{};
  int64_t sum = 0;
  for (const DeviceState& c : fleet.devices(n)) {
    sum += amount(c) * row(node.model, c)[cpu];
    for (size_t l = 0; l < multi_needs_.size(); ++l)
      if (serves(c, node.model, multi_needs_[l])) ++tally[l].count, tally[l].amount += amount(c);
  }
  return sum + multi(node.model, cpu, tally.data());
}

int64_t Fragments::fragment(const Fleet& fleet, uint32_t n) const {
  int64_t total = 0;
  for (const DeviceState& c : fleet.devices(n)) total += amount(c);
  return all_ * total - useful(fleet, n);
}

}  // namespace carve::place
