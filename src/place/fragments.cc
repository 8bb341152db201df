#include "place/fragments.h"

#include <algorithm>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

// Returns a type's memory need on a model, however it is given. `device` is an unused device of that model.
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

void Fragments::build(const Fleet& fleet, const WorkloadModel& workload) {
  const unsigned models = std::max(1u, fleet.models());
  std::vector<DeviceState> sample(models);  // One device per model.
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    if (fleet.node(n).devices != 0) sample[fleet.node(n).model] = fleet.devices(n)[0];

  // The distinct needs. A type that needs one level too many is left out; the rarest types come last.
  std::vector<uint32_t> shares;
  cpu_.clear();
  for (auto& levels : memory_) levels.clear();
  multi_.clear();
  multi_needs_.clear();
  WorkloadModel used;
  int64_t compute_asked = 0;
  int64_t memory_asked = 0;
  all_ = 0;
  for (const Type& type : workload) {
    const RequestShape& a = type.shape;
    const auto more = [](auto levels, auto value) {
      return std::ranges::find(levels, value) == levels.end() && levels.size() >= max_levels - 1;
    };
    if (more(shares, needed_share(a).basis_points) || more(cpu_, a.cpu_milli)) continue;
    bool room = true;
    for (unsigned t = 0; t < models; ++t) room &= !more(memory_[t], memory_of(a, sample[t]).count);
    if (!room) continue;
    all_ += type.weight;
    used.push_back(type);
    if (a.devices == 0) continue;
    const auto add = [](auto& levels, auto value) {
      if (std::ranges::find(levels, value) == levels.end()) levels.push_back(value);
    };
    add(shares, needed_share(a).basis_points);
    add(cpu_, a.cpu_milli);
    for (unsigned t = 0; t < models; ++t) add(memory_[t], memory_of(a, sample[t]).count);
    compute_asked += (type.weight >> 10) * a.devices * needed_share(a).basis_points;
    const DeviceState& any = sample[0];
    if (any.usable.count != 0)
      memory_asked += (type.weight >> 10) * a.devices *
                      static_cast<int64_t>(static_cast<unsigned __int128>(memory_of(a, any).count) * 10000 /
                                           any.usable.count);
  }
  settle(shares);
  settle(cpu_);
  memory_levels_ = 1;
  for (unsigned t = 0; t < models; ++t) {
    settle(memory_[t]);
    // A single level that every request reaches is no level.
    if (!(memory_[t].size() <= 1 && (memory_[t].empty() || memory_[t][0] == 0)))
      memory_levels_ = std::max(memory_levels_, static_cast<unsigned>(memory_[t].size()) + 1);
  }
  // A dimension's weight is its part of the demand.
  memory_weight_ =
      compute_asked + memory_asked == 0 ? 0 : memory_asked * 1024 / (compute_asked + memory_asked);
  compute_weight_ = 1024 - memory_weight_;
  invariant(compute_weight_ >= 0 && memory_weight_ >= 0, "an amount is never negative");

  share_levels_ = static_cast<unsigned>(shares.size()) + 1;
  cpu_levels_ = static_cast<unsigned>(cpu_.size()) + 1;
  invariant(share_levels_ <= max_levels && memory_levels_ <= max_levels && cpu_levels_ <= max_levels);
  for (uint32_t r = 0; r <= 10000; ++r) share_level_[r] = static_cast<uint8_t>(not_above(shares, r));

  served_.assign(size_t{models} * memory_levels_ * share_levels_ * cpu_levels_, 0);
  for (const Type& type : used) {
    const RequestShape& a = type.shape;
    if (a.devices == 0) continue;
    const unsigned cpu = cpu_level(a.cpu_milli);
    if (a.devices > 1) {
      Need needed{needed_share(a), {}};
      for (unsigned t = 0; t < models; ++t) needed.memory[t] = memory_of(a, sample[t]).count;
      const auto known = std::ranges::find_if(multi_needs_, [&](const Need& other) {
        return other.share == needed.share && other.memory == needed.memory;
      });
      if (known == multi_needs_.end() && multi_needs_.size() == max_multi_levels) continue;
      const auto level = static_cast<unsigned>(known - multi_needs_.begin());
      if (known == multi_needs_.end()) multi_needs_.push_back(needed);
      invariant(level < multi_needs_.size() && level < max_multi_levels);
      multi_.push_back({level, a.devices, cpu, a.models, type.weight});
      continue;
    }
    const unsigned share = share_level_[needed_share(a).basis_points];
    for (unsigned t = 0; t < models; ++t) {
      if ((a.models >> t & 1) == 0) continue;
      const unsigned memory = memory_level(t, memory_of(a, sample[t]).count);
      for (unsigned w = memory; w < memory_levels_; ++w)
        for (unsigned r = share; r < share_levels_; ++r)
          for (unsigned c = cpu; c < cpu_levels_; ++c)
            served_[((size_t{t} * memory_levels_ + w) * share_levels_ + r) * cpu_levels_ + c] += type.weight;
    }
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
