#include "place/fleet.h"

#include <algorithm>
#include <bit>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {

std::optional<unsigned> Fleet::known_model(std::string_view name) const {
  const auto known = std::ranges::find(models_, name);
  if (known == models_.end()) return std::nullopt;
  return static_cast<unsigned>(known - models_.begin());
}

std::optional<unsigned> Fleet::model(std::string_view name) {
  if (const auto known = known_model(name)) return known;
  if (models_.size() == max_models) return std::nullopt;
  models_.emplace_back(name);
  sums_.emplace_back();
  invariant(models_.size() <= max_models, "a model is one bit of Models");
  return static_cast<unsigned>(models_.size() - 1);
}

uint32_t Fleet::add(NodeState node, std::span<const DeviceState> devices) {
  // The parser of the input has rejected such a node.
  invariant(devices.size() <= max_node_devices, "a set of devices fits in one word");
  invariant(node.model < models_.size() && node.kind < max_node_kinds);
  node.first = static_cast<uint32_t>(devices_.size());
  node.devices = static_cast<uint8_t>(devices.size());
  devices_.insert(devices_.end(), devices.begin(), devices.end());
  node.cpu_all = std::max(node.cpu_all, node.cpu_free);
  nodes_.push_back(node);
  last_.push_back(0);
  ModelSums& sums = sums_[node.model];
  sums.devices += node.devices;
  largest_node_ = std::max<unsigned>(largest_node_, node.devices);
  for (const DeviceState& c : devices) {
    free_share_ += c.free_share.basis_points;
    sums.free_share += c.free_share.basis_points;
    sums.free.count += c.free.count;
    sums.usable.count += c.usable.count;
  }
  if (journal_.size() < 2 * nodes_.size()) {
    journal_.assign(std::bit_ceil(2 * nodes_.size()), 0);
    floor_ = changes_ + 1;
  }
  invariant(std::has_single_bit(journal_.size()));
  invariant(last_.size() == nodes_.size());
  invariant(nodes_.back().first + size_t{node.devices} == devices_.size());
  const uint32_t n = nodes() - 1;
  changed(n);
  return n;
}

void Fleet::changed(uint32_t n) {
  invariant(n < nodes_.size());
  last_[n] = ++changes_;
  journal_[changes_ & (journal_.size() - 1)] = n;
}

std::vector<PartPlace> Assignment::places() const {
  std::vector<PartPlace> out = parts;
  for (DeviceSet set = parts.empty() ? devices : 0; set != 0; set &= set - 1)
    out.push_back({static_cast<unsigned>(std::countr_zero(set)), memory});
  return out;
}

unsigned Assignment::part_on(unsigned device) const {
  invariant(device < max_node_devices && (devices >> device & 1) != 0);
  if (parts.empty()) return 0;
  return static_cast<unsigned>(std::ranges::find(parts, device, &PartPlace::device) - parts.begin());
}

Bytes Assignment::memory_on(unsigned device) const {
  return parts.empty() ? memory : parts[part_on(device)].memory;
}

Bytes Assignment::total() const {
  Bytes sum{memory.count * static_cast<unsigned>(std::popcount(devices))};
  if (!parts.empty()) sum = {};
  for (const PartPlace& part : parts) sum.count += part.memory.count;
  return sum;
}

void Fleet::move(const RequestShape& shape, const Assignment& assignment, bool taken) {
  invariant(assignment.node < nodes_.size());
  NodeState& node = nodes_[assignment.node];
  invariant(uint64_t{assignment.devices} >> node.devices == 0, "the devices are devices of the node");
  invariant(assignment.parts.size() == shape.parts.size(), "the assignment is of this request");
  uint64_t moved = 0;  // Basis points of a device.
  DeviceSet set = assignment.devices;
  for (unsigned i = 0; set != 0; ++i, set &= set - 1) {
    const auto [number, memory] =
        assignment.parts.empty() ? PartPlace{static_cast<unsigned>(std::countr_zero(set)), assignment.memory}
                                 : assignment.parts[i];
    DeviceState& device = devices_[node.first + number];
    const Share share = needed_share(shape, i);
    moved += share.basis_points;
    if (taken) {
      invariant(memory <= device.free && share <= device.free_share);
      device.free.count -= memory.count;
      device.free_share.basis_points -= share.basis_points;
      ++device.slices;
      device.isolated = static_cast<uint8_t>(device.isolated + shape.isolated);
      device.exclusive = shape.exclusive;
    } else {
      invariant(device.slices > 0, "a slice leaves a device once");
      device.free.count += memory.count;
      device.free_share.basis_points += share.basis_points;
      --device.slices;
      device.isolated = static_cast<uint8_t>(device.isolated - shape.isolated);
      device.exclusive = false;
    }
  }
  const uint64_t bytes = assignment.total().count;
  ModelSums& sums = sums_[node.model];
  if (taken) {
    invariant(shape.cpu_milli <= node.cpu_free && shape.host_memory <= node.host_free);
    invariant(moved <= sums.free_share && sums.free_share <= free_share_);
    invariant(bytes <= sums.free.count);
    node.cpu_free -= shape.cpu_milli;
    node.host_free.count -= shape.host_memory.count;
    free_share_ -= moved, sums.free_share -= moved;
    sums.free.count -= bytes;
  } else {
    node.cpu_free += shape.cpu_milli;
    node.host_free.count += shape.host_memory.count;
    free_share_ += moved, sums.free_share += moved;
    sums.free.count += bytes;
  }
  changed(assignment.node);
}

void Fleet::take(const RequestShape& shape, const Assignment& assignment) { move(shape, assignment, true); }
void Fleet::give(const RequestShape& shape, const Assignment& assignment) { move(shape, assignment, false); }

void Fleet::set_up(uint32_t n, bool up) {
  nodes_[n].up = up;
  changed(n);
}

void Fleet::set_host(uint32_t n, uint32_t cpu_free, Bytes host_free) {
  nodes_[n].cpu_free = cpu_free;
  nodes_[n].cpu_all = std::max(nodes_[n].cpu_all, cpu_free);
  nodes_[n].host_free = host_free;
  changed(n);
}

void Fleet::set_device(uint32_t n, unsigned i, const DeviceState& device) {
  invariant(n < nodes_.size() && i < nodes_[n].devices);
  DeviceState& old = devices_[nodes_[n].first + i];
  const uint64_t more =
      uint64_t{device.free_share.basis_points} - old.free_share.basis_points;  // Modulo 2^64.
  ModelSums& sums = sums_[nodes_[n].model];
  free_share_ += more, sums.free_share += more;
  sums.free.count += device.free.count - old.free.count;
  sums.usable.count += device.usable.count - old.usable.count;
  old = device;
  changed(n);
}

RequestShape shape_of(const Request& r, const Fleet& fleet) {
  invariant(r.devices >= 1 && r.devices <= max_slice_devices, "the request is validated");
  RequestShape a;
  a.devices = static_cast<uint8_t>(r.devices);
  a.exclusive = r.exclusive;
  a.isolated = r.isolated() != Isolation::none;
  a.best_effort = r.isolated() != Isolation::memory_and_compute && !r.exclusive;
  if (r.policy) a.policy = static_cast<uint8_t>(*r.policy);
  a.share = r.share;
  a.spill = r.spill;
  a.cpu_milli = r.cpu_milli;
  a.host_memory = r.host_memory;
  for (const PartRequest& part : r.parts) {
    PartShape& out = a.parts.emplace_back(PartShape{.share = part.share});
    if (const auto* bytes = std::get_if<PerDevice>(&part.memory)) out.memory = bytes->memory;
    if (const auto* of = std::get_if<OfUsable>(&part.memory)) out.part = of->part;
  }
  if (const auto* each = std::get_if<PerDevice>(&r.memory)) a.memory = each->memory;
  if (const auto* total = std::get_if<InTotal>(&r.memory)) a.memory = {total->memory.count / r.devices};
  if (const auto* part = std::get_if<OfUsable>(&r.memory)) a.part = part->part;
  if (!r.models.empty()) {
    a.models = 0;
    for (const std::string& m : r.models)
      if (const auto bit = fleet.known_model(m)) a.models |= Models{1} << *bit;
  }
  return a;
}

}  // namespace carve::place
