#include "place/guards.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

using Wide = __int128;

// The part of the fair share that is reserved for a group that is bound to models. Chosen by measurement:
// with 100 %, gpuspec20 fills to 94.997 % instead of 95.035 % (docs/decisions/0005).
constexpr int64_t reserved_percent = 90;

int64_t mebibytes(Bytes bytes) { return static_cast<int64_t>(bytes.count >> 20); }

Resources& operator+=(Resources& a, const Resources& b) {
  for (const Resource r : resources) a.*r += b.*r;
  return a;
}

Resources times(const Resources& a, int64_t factor) { return {a.compute * factor, a.memory * factor}; }

Models models_of(const Fleet& fleet) {
  return fleet.models() == max_models ? any_model : (Models{1} << fleet.models()) - 1;
}

uint64_t devices_of(const Fleet& fleet, Models models) {
  uint64_t devices = 0;
  for (unsigned t = 0; t < fleet.models(); ++t) devices += (models >> t & 1) * fleet.devices_of_model(t);
  return devices;
}

Resources all_of(const Fleet& fleet) {
  Resources out{int64_t{fleet.devices()} * whole_device.basis_points, 0};
  for (unsigned t = 0; t < fleet.models(); ++t) out.memory += mebibytes(fleet.usable_of_model(t));
  return out;
}

Resources free_of(const Fleet& fleet, unsigned model) {
  return {static_cast<int64_t>(fleet.free_share_of_model(model)), mebibytes(fleet.free_of_model(model))};
}

Resources free_of(const Fleet& fleet) {
  Resources out{static_cast<int64_t>(fleet.free_share()), 0};
  for (unsigned t = 0; t < fleet.models(); ++t) out.memory += mebibytes(fleet.free_of_model(t));
  return out;
}

// Returns the demand of a request on all its devices. A percentage of a device's memory is taken from the
// mean of the devices that the request may use.
Resources demand_of(const Fleet& fleet, const RequestShape& a) {
  if (a.devices == 0) return {};
  DeviceState mean;
  uint64_t devices = 0;
  for (unsigned t = 0; t < fleet.models(); ++t) {
    if ((a.models >> t & 1) == 0) continue;
    devices += fleet.devices_of_model(t);
    mean.usable.count += fleet.usable_of_model(t).count;
  }
  if (devices != 0) mean.usable.count /= devices;
  if (a.parts.empty()) return times({needed_share(a).basis_points, mebibytes(need(a, mean))}, a.devices);
  Resources out;
  for (unsigned i = 0; i < a.devices; ++i)
    out += {needed_share(a, i).basis_points, mebibytes(need(a, i, mean))};
  return out;
}

// Returns whether no node has room for two requests of this class. Parts that differ count as requests for
// one device each (ArrivalCounts).
bool is_large(const Fleet& fleet, const RequestShape& a) {
  return a.parts.empty() && a.devices > 1 && 2u * a.devices > fleet.largest_node();
}

bool serves(const DeviceState& c, const RequestShape& a) {
  return !c.sick && !c.partitioned && !c.exclusive && c.free_share >= needed_share(a) && c.free >= need(a, c);
}

// Returns whether a slot of `larger` also serves `a`, with at most a quarter more CPU than needed.
bool like(const RequestShape& larger, const RequestShape& a) {
  return a.parts == larger.parts && a.devices == larger.devices && a.share == larger.share &&
         a.memory == larger.memory && a.part == larger.part && a.exclusive == larger.exclusive &&
         a.models == larger.models && a.cpu_milli <= larger.cpu_milli &&
         uint64_t{larger.cpu_milli} * 4 <= uint64_t{a.cpu_milli} * 5;
}

uint64_t root(Wide square) {
  invariant(square >= 0);
  uint64_t r = 0;
  for (uint64_t bit = uint64_t{1} << 62; bit != 0; bit >>= 1)
    if (Wide{r | bit} * (r | bit) <= square) r |= bit;
  invariant(Wide{r} * r <= square && square < Wide{r + 1} * (r + 1));
  return r;
}

}  // namespace

unsigned Guards::slots_of(const SlotType& type, const NodeState& node, std::span<const DeviceState> devices) {
  if (!node.up || (type.need.models >> node.model & 1) == 0) return 0;
  unsigned count = 0;
  for (const DeviceState& c : devices) count += serves(c, type.need);
  count /= type.need.devices;
  return type.need.cpu_milli == 0 ? count : std::min(count, node.cpu_free / type.need.cpu_milli);
}

Guards::SlotType* Guards::type_of(const RequestShape& shape) {
  const auto type = std::ranges::find_if(types_, [&](const SlotType& t) { return like(t.need, shape); });
  return type == types_.end() ? nullptr : &*type;
}

void Guards::resize(size_t nodes) {
  nodes_.resize(nodes);
  kept_.resize((nodes + block_nodes - 1) / block_nodes * block_nodes);
}

std::span<const uint8_t, block_nodes> Guards::kept_of_block(size_t block) const {
  static constexpr std::array<uint8_t, block_nodes> none{};
  const size_t first = block * block_nodes;
  return first < kept_.size() ? std::span(kept_).subspan(first).first<block_nodes>() : std::span(none);
}

Guards::Seen& Guards::seen(uint32_t n) {
  if (n >= nodes_.size()) resize(n + 1);
  return nodes_[n];
}

void Guards::set_workload_model(const Fleet& fleet, const WorkloadModel& workload) {
  groups_.clear();
  const std::vector<SlotType> old_types = std::exchange(types_, {});
  demand_ = {};
  here_ = models_of(fleet);
  WorkloadModel several;
  for (const Type& type : workload) {
    const RequestShape& a = type.shape;
    if (a.devices == 0) continue;
    const Resources demand = times(demand_of(fleet, a), type.weight);
    demand_ += demand;
    const Models models = a.models & here_;
    if (models != here_ && models != 0) {
      auto group = std::ranges::find(groups_, models, &Group::models);
      if (group == groups_.end()) group = groups_.insert(group, {models, devices_of(fleet, models), {}, {}});
      group->demand += demand;
    }
    if (a.devices > 1) several.push_back(type);
  }
  std::ranges::stable_sort(groups_, {}, &Group::devices);

  // Types that the same slot serves are merged and represented by the type with the most CPU. The types with
  // the most demand are kept.
  std::ranges::stable_sort(several, std::greater{}, [](const Type& t) { return t.shape.cpu_milli; });
  for (const Type& type : several) {
    SlotType* known = type_of(type.shape);
    if (known == nullptr) known = &types_.emplace_back(SlotType{type.shape, 0, is_large(fleet, type.shape)});
    invariant(known->need.devices > 1, "only a request for several devices has slots");
    known->rate += type.weight;
  }
  const Resource scarce = exhausted_first(all_of(fleet));
  std::ranges::stable_sort(types_, std::greater{},
                           [&](const SlotType& t) { return t.rate * demand_of(fleet, t.need).*scarce; });
  types_.resize(std::min<size_t>(types_.size(), max_slot_types));
  invariant(nodes_.size() <= fleet.nodes());

  // Takes over the current state. A node that is draining continues to drain if its type is unchanged.
  const std::vector<uint8_t> old_kept = std::exchange(kept_, {});
  nodes_.clear();
  resize(fleet.nodes());
  for (size_t j = 0; j < types_.size(); ++j)
    for (size_t i = 0; i < old_types.size(); ++i) {
      if (!types_[j].large || !old_types[i].large || types_[j].need != old_types[i].need) continue;
      for (size_t n = 0; n < old_kept.size(); ++n)
        kept_[n] = static_cast<uint8_t>(kept_[n] | (old_kept[n] >> i & 1u) << j);
      types_[j].kept = old_types[i].kept;
      types_[j].again = old_types[i].again;
    }
  for (uint32_t n = 0; n < fleet.nodes(); ++n) changed(fleet, n);
  for (const Large& l : large_) count_large(l, 1);
  for (const ModelDemand& d : demand_of_models_)
    for (Group& g : groups_)
      if (g.models == (d.models & here_)) g.held += d.amounts;
}

void Guards::changed(const Fleet& fleet, uint32_t n) {
  if (types_.empty()) return;
  Seen& node = seen(n);
  for (size_t j = 0; j < types_.size(); ++j) {
    SlotType& type = types_[j];
    if (type.large) {
      if ((kept_[n] >> j & 1) == 0 || fleet.node(n).up) continue;
      kept_[n] = static_cast<uint8_t>(kept_[n] & ~(1u << j));
      --type.kept;
      invariant(type.kept >= 0);
      continue;
    }
    const unsigned now = slots_of(type, fleet.node(n), fleet.devices(n));
    invariant(type.slots >= node.slots[j], "the slots of all nodes include those of this node");
    type.slots += now - uint64_t{node.slots[j]};  // Modulo 2^64.
    node.slots[j] = static_cast<uint8_t>(now);
  }
}

void Guards::add_placed(const Fleet& fleet, const RequestShape& shape, uint32_t n) {
  if (is_large(fleet, shape)) {
    large_.push_back({shape, n});
    count_large(large_.back(), 1);
  }
  count_held(fleet, shape, n, 1);
}

void Guards::remove_placed(const Fleet& fleet, const RequestShape& shape, uint32_t n) {
  const auto gone =
      std::ranges::find_if(large_, [&](const Large& l) { return l.node == n && l.shape == shape; });
  if (gone != large_.end()) {
    count_large(*gone, -1);
    *gone = large_.back();
    large_.pop_back();
  }
  count_held(fleet, shape, n, -1);
}

void Guards::count_large(const Large& large, int count) {
  Seen& node = seen(large.node);
  invariant(count > 0 || node.large > 0);
  node.large = static_cast<uint8_t>(node.large + count);
  if (SlotType* type = type_of(large.shape)) type->held += count;
}

// All devices of a node are equal.
void Guards::count_held(const Fleet& fleet, const RequestShape& shape, uint32_t n, int count) {
  if (shape.devices == 0 || shape.models == any_model) return;
  auto demand = std::ranges::find(demand_of_models_, shape.models, &ModelDemand::models);
  if (demand == demand_of_models_.end()) {
    if (demand_of_models_.size() == max_types) return;
    demand = demand_of_models_.insert(demand, {shape.models, {}});
  }
  Resources moved;
  for (unsigned i = 0; i < shape.devices; ++i)
    moved += times({needed_share(shape, i).basis_points, mebibytes(need(shape, i, fleet.devices(n).front()))},
                   count);
  demand->amounts += moved;
  for (Group& g : groups_)
    if (g.models == (shape.models & here_)) g.held += moved;
}

// Returns the resource for which the fewest expected arrivals fit into `room`.
Resource Guards::exhausted_first(const Resources& room) const {
  if (demand_.memory == 0) return &Resources::compute;
  if (demand_.compute == 0) return &Resources::memory;
  return Wide{room.memory} * demand_.compute < Wide{room.compute} * demand_.memory ? &Resources::memory
                                                                                   : &Resources::compute;
}

// Returns how many nodes to keep: the fair number, plus one and a half standard deviations, minus the number
// of placed requests.
int64_t Guards::wanted(const Fleet& fleet, const SlotType& type) const {
  if (demand_ == Resources{}) return 0;  // No request needs a device's resources, so there is no fair share.
  const Resources all = all_of(fleet);
  const Resource scarce = exhausted_first(all);
  const Wide fair = (Wide{all.*scarce} * type.rate << 16) / (demand_.*scarce);
  const auto nodes = static_cast<int64_t>((fair + root((9 * fair << 16) / 4) + (1 << 15)) >> 16);
  invariant(nodes >= 0);
  return std::max<int64_t>(0, nodes - type.held);
}

// Returns how many slices must end before this node can serve the type; `never` if it cannot or if it has its
// large request.
uint32_t Guards::to_drain(const Fleet& fleet, const SlotType& type, uint32_t n) const {
  invariant(n < nodes_.size());
  const NodeState& node = fleet.node(n);
  if (!node.up || (type.need.models >> node.model & 1) == 0 || node.cpu_all < type.need.cpu_milli ||
      nodes_[n].large != 0)
    return never;
  unsigned able = 0;
  uint32_t slices = 0;
  for (const DeviceState& c : fleet.devices(n)) {
    able += !c.sick && !c.partitioned && need(type.need, c) <= c.usable;
    slices += c.slices;
  }
  return able < type.need.devices ? never : slices;
}

void Guards::settle(const Fleet& fleet) {
  for (size_t j = 0; j < types_.size(); ++j) {
    SlotType& type = types_[j];
    if (!type.large || fleet.changes() < type.again) continue;
    const int64_t missing = wanted(fleet, type) - type.kept;
    // In fleets of several thousand nodes or more, reading all nodes for each request would cost too much.
    const int64_t slack = fleet.nodes() / 4096;
    if (missing >= -slack && missing <= slack) continue;
    const auto bit = static_cast<uint8_t>(1u << j);
    seen(fleet.nodes() - 1);
    candidates_.clear();
    for (uint32_t n = 0; n < fleet.nodes(); ++n) {
      if (missing > 0 ? kept_[n] != 0 : (kept_[n] & bit) == 0) continue;
      const uint32_t slices = to_drain(fleet, type, n);
      if (missing < 0) candidates_.emplace_back(~slices, n);  // To release the nodes with the most slices.
      if (missing > 0 && slices != never) candidates_.emplace_back(slices, n);
    }
    const auto count = std::min(candidates_.size(), static_cast<size_t>(missing > 0 ? missing : -missing));
    if (static_cast<int64_t>(count) < missing) type.again = fleet.changes() + fleet.nodes();
    std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(count));
    for (size_t i = 0; i < count; ++i) kept_[candidates_[i].second] ^= bit;
    type.kept += missing > 0 ? static_cast<int64_t>(count) : -static_cast<int64_t>(count);
    invariant(type.kept >= 0 && type.kept <= fleet.nodes());
  }
}

uint8_t Guards::destroyed(const Fleet& fleet, uint32_t n, const RequestShape& shape,
                          const PartDevices& chosen) const {
  if (types_.empty()) return 0;
  invariant(n < nodes_.size(), "changed() was called for each node");
  const auto devices = fleet.devices(n);
  std::array<DeviceState, max_node_devices> after;
  std::ranges::copy(devices, after.begin());
  NodeState node = fleet.node(n);
  node.cpu_free -= shape.cpu_milli;
  chosen.each([&](unsigned i, unsigned device) {
    DeviceState& c = after[device];
    c.free = minus(c.free, need(shape, i, c));
    c.free_share.basis_points -= needed_share(shape, i).basis_points;
    c.exclusive |= shape.exclusive;
  });
  unsigned out = 0;
  for (size_t j = 0; j < types_.size(); ++j)
    if (!types_[j].large && nodes_[n].slots[j] != 0 &&
        slots_of(types_[j], node, {after.data(), devices.size()}) < nodes_[n].slots[j])
      out |= 1u << j;
  return static_cast<uint8_t>(out);
}

// Returns those of the request's models that have too little left beyond the expected needs of narrower
// groups.
Models Guards::closed(const Fleet& fleet, const RequestShape& shape) const {
  const Models own = shape.models & models_of(fleet);
  const uint64_t own_devices = devices_of(fleet, own);
  const Resources all = all_of(fleet), mine = demand_of(fleet, shape);
  const Resource scarce = exhausted_first(all);
  Models out = 0;
  for (const Resource r : resources) {
    if (mine.*r == 0) continue;
    std::array<int64_t, max_models> left{};
    for (unsigned t = 0; t < fleet.models(); ++t) left[t] = free_of(fleet, t).*r;
    for (const Group& g : groups_) {
      // The group is not narrower, or is the request's own.
      if (g.devices >= own_devices || (own & ~g.models) == 0) continue;
      int64_t room = 0;
      for (Models s = g.models; s != 0; s &= s - 1) room += left[static_cast<unsigned>(std::countr_zero(s))];
      const auto fair = static_cast<int64_t>(Wide{all.*scarce} * (g.demand.*r) / (demand_.*scarce));
      const int64_t reserve = reserve_ * std::max<int64_t>(0, fair * reserved_percent / 100 - g.held.*r);
      for (Models s = g.models; s != 0; s &= s - 1) {
        int64_t& of = left[static_cast<unsigned>(std::countr_zero(s))];
        of -= reserve >= room ? of : static_cast<int64_t>(Wide{reserve} * of / room);
      }
    }
    for (Models s = own; s != 0; s &= s - 1) {
      const auto t = static_cast<unsigned>(std::countr_zero(s));
      if (left[t] < mine.*r && left[t] < free_of(fleet, t).*r) out |= Models{1} << t;
    }
  }
  return out;
}

unsigned Guards::reservations(const Fleet& fleet, const RequestShape& shape, Reservations& out) const {
  if (demand_ == Resources{}) return 0;
  unsigned count = 0;
  if (shape.devices != 0 && !groups_.empty())
    if (const Models models = closed(fleet, shape); models != 0) out[count++] = {models, 0, 0};

  for (size_t j = 0; j < types_.size(); ++j)
    if (types_[j].kept != 0 && !like(types_[j].need, shape))
      out[count++] = {0, 0, static_cast<uint8_t>(1u << j)};

  // The slot types without a slot to spare, the scarcest first.
  const Resources room = free_of(fleet);
  const Resource first = exhausted_first(room);
  std::array<std::pair<Wide, uint8_t>, max_slot_types> scarce;
  unsigned scarce_count = 0;
  for (size_t j = 0; j < types_.size(); ++j) {
    const SlotType& type = types_[j];
    if (type.large || type.slots == 0 || like(type.need, shape)) continue;
    // slots <= 1.5 * H * rate, where H = free * 2^30 / demand and rate is in units of 2^-30. Both sides are
    // multiplied by the demand.
    const Wide demand = demand_.*first, expected = Wide{room.*first} * type.rate;
    if (Wide{2} * type.slots * demand > 3 * expected) continue;
    // slots / expected, as a single number for ordering.
    const Wide spare = (Wide{type.slots} * demand << 20) / (expected + 1);
    unsigned at = scarce_count++;
    for (; at > 0 && scarce[at - 1].first > spare; --at) scarce[at] = scarce[at - 1];
    scarce[at] = {spare, static_cast<uint8_t>(1u << j)};
  }
  invariant(count + scarce_count <= out.size());
  for (unsigned i = 0; i < scarce_count; ++i) out[count++] = {0, scarce[i].second, 0};
  return count;
}

}  // namespace carve::place
