#include "place/consolidation.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <set>

#include "core/invariant.h"
#include "place/rules.h"

namespace carve::place {
namespace {

template <class Act>
void for_each_device(const Fleet& fleet, const Assignment& assignment, Act act) {
  for (DeviceSet s = assignment.devices; s != 0; s &= s - 1)
    act(fleet.node(assignment.node).first + static_cast<unsigned>(std::countr_zero(s)));
}

// In this class, devices are identified by their number in the fleet.
class Planner {
 public:
  Planner(Engine& engine, std::span<const PlacedRequest> standing);
  ConsolidationPlan run(unsigned wanted);

 private:
  struct Cost {
    size_t slices;
    Bytes held;
    uint32_t device;
    friend auto operator<=>(const Cost&, const Cost&) = default;
  };

  Cost cost(uint32_t device) const;
  void close(uint32_t device, bool closed);
  void move(size_t who, const Assignment& from, const Assignment& to);
  std::vector<uint32_t> emptied_with(uint32_t device) const;
  bool vacate(std::span<const uint32_t> devices, std::span<const size_t> who);
  void keep(const Move&);

  Engine& engine_;
  Fleet& fleet_;
  std::span<const PlacedRequest> standing_;
  std::vector<uint32_t> node_;  // Indexed by device.
  // By device: its slices, as positions in `standing_`.
  std::vector<std::vector<size_t>> on_;
  std::vector<bool> able_;  // By device: whether it may be emptied.
  std::set<Cost> next_;     // Devices that have not been tried yet.
  std::vector<uint32_t> closed_;
  ConsolidationPlan plan_;
};

Planner::Planner(Engine& engine, std::span<const PlacedRequest> standing)
    : engine_(engine),
      fleet_(engine.fleet()),
      standing_(standing),
      on_(engine.fleet().devices()),
      able_(engine.fleet().devices(), true) {
  for (uint32_t n = 0; n < fleet_.nodes(); ++n) node_.insert(node_.end(), fleet_.node(n).devices, n);
  invariant(node_.size() == fleet_.devices());
  for (size_t i = 0; i < standing.size(); ++i) {
    const RequestShape& shape = engine.shape(standing[i].request_class);
    bool fixed = shape.exclusive || shape.only != any_device;
    for (unsigned part = 0; part < shape.devices; ++part) fixed |= needed_share(shape, part) == whole_device;
    for_each_device(fleet_, standing[i].assignment, [&](uint32_t device) {
      on_[device].push_back(i);
      if (fixed) able_[device] = false;
    });
  }
  for (uint32_t device = 0; device < on_.size(); ++device) {
    const DeviceState& c = fleet_.devices(node_[device])[device - fleet_.node(node_[device]).first];
    // Empty devices stay empty, because filling one to empty another gains nothing. A device cannot be
    // emptied if it has a slice that was not passed to the planner or that cannot be moved.
    const bool stays_empty = c.slices == 0 && !c.sick;
    if (stays_empty || c.sick || c.slices != on_[device].size()) able_[device] = false;
    if (stays_empty) closed_.push_back(device);
    if (able_[device]) next_.insert(cost(device));
  }
  for (const uint32_t device : closed_) close(device, true);
}

Planner::Cost Planner::cost(uint32_t device) const {
  Cost out{on_[device].size(), {}, device};
  const unsigned i = device - fleet_.node(node_[device]).first;
  for (const size_t who : on_[device]) out.held.count += standing_[who].assignment.memory_on(i).count;
  return out;
}

// Closes a device for all requests, or opens it again.
void Planner::close(uint32_t device, bool closed) {
  const uint32_t n = node_[device];
  const unsigned i = device - fleet_.node(n).first;
  DeviceState state = fleet_.devices(n)[i];
  invariant(state.sick != closed, "a device is closed once and opened once");
  state.sick = closed;
  fleet_.set_device(n, i, state);
}

void Planner::move(size_t who, const Assignment& from, const Assignment& to) {
  engine_.release(standing_[who].request_class, from, standing_[who].application);
  engine_.take(standing_[who].request_class, to, standing_[who].application);
}

// Returns the device, and other devices all of whose slices are also on it.
std::vector<uint32_t> Planner::emptied_with(uint32_t device) const {
  std::vector<uint32_t> out = {device};
  const auto& leaving = on_[device];
  for (const size_t who : leaving)
    for_each_device(fleet_, standing_[who].assignment, [&](uint32_t other) {
      if (able_[other] && std::ranges::find(out, other) == out.end() &&
          std::ranges::all_of(on_[other],
                              [&](size_t w) { return std::ranges::find(leaving, w) != leaving.end(); }))
        out.push_back(other);
    });
  return out;
}

// Moves all slices off these devices and keeps the devices closed, or changes nothing.
bool Planner::vacate(std::span<const uint32_t> devices, std::span<const size_t> who) {
  for (const uint32_t device : devices) close(device, true);
  std::vector<Move> moves;
  for (const size_t w : who) {
    const auto& [request_class, from, application] = standing_[w];
    engine_.release(request_class, from, application);
    const auto to = engine_.find(request_class, application);
    engine_.take(request_class, to.value_or(from), application);
    if (!to) break;
    moves.push_back({w, from, *to});
  }
  invariant(moves.size() <= who.size());
  if (moves.size() != who.size()) {
    for (size_t i = moves.size(); i-- > 0;) move(moves[i].who, moves[i].to, moves[i].from);
    for (const uint32_t device : devices) close(device, false);
    return false;
  }
  for (const Move& m : moves) keep(m);
  for (const uint32_t device : devices) {
    next_.erase(cost(device));
    able_[device] = false;
    closed_.push_back(device);
    plan_.emptied.push_back({node_[device], device - fleet_.node(node_[device]).first});
  }
  return true;
}

// Adds a move to the plan. A moved slice is not moved again. The device that it left is now cheaper to empty.
void Planner::keep(const Move& m) {
  invariant(m.who < standing_.size() && m.from == standing_[m.who].assignment, "no slice moves twice");
  for_each_device(fleet_, m.from, [&](uint32_t device) {
    // A device that was filled by a move may not be emptied, so its cost is not used.
    const bool waits = able_[device] && next_.erase(cost(device)) != 0;
    std::erase(on_[device], m.who);
    if (waits) next_.insert(cost(device));
  });
  for_each_device(fleet_, m.to, [&](uint32_t device) {
    if (able_[device]) next_.erase(cost(device));
    invariant(!fleet_.devices(m.to.node)[device - fleet_.node(m.to.node).first].sick);
    able_[device] = false;
    on_[device].push_back(m.who);
  });
  for (const auto& [from, to] : exchanged(m)) {
    plan_.moved.count += m.from.memory_on(from).count;
    plan_.moved_share +=
        needed_share(engine_.shape(standing_[m.who].request_class), m.from.part_on(from)).basis_points;
  }
  plan_.moves.push_back(m);
}

ConsolidationPlan Planner::run(unsigned wanted) {
  const uint64_t free_before = fleet_.free_share();
  while (!next_.empty() && plan_.emptied.size() < wanted) {
    const uint32_t device = next_.begin()->device;
    next_.erase(next_.begin());
    const std::vector<size_t> who = on_[device];
    const std::vector<uint32_t> together = emptied_with(device);
    if (!vacate(together, who) && together.size() > 1) vacate({&device, 1}, who);
  }
  for (size_t i = plan_.moves.size(); i-- > 0;)
    move(plan_.moves[i].who, plan_.moves[i].to, plan_.moves[i].from);
  for (const uint32_t device : closed_) close(device, false);
  invariant(fleet_.free_share() == free_before, "a plan changes nothing");
  return std::move(plan_);
}

}  // namespace

std::vector<std::pair<unsigned, unsigned>> exchanged(const Move& m) {
  const DeviceSet kept = m.from.node == m.to.node ? m.from.devices & m.to.devices : 0;
  std::vector<std::pair<unsigned, unsigned>> out;
  for (size_t i = 0; i < m.from.parts.size(); ++i)
    if (m.from.node != m.to.node || m.from.parts[i].device != m.to.parts[i].device)
      out.emplace_back(m.from.parts[i].device, m.to.parts[i].device);
  if (!m.from.parts.empty()) return out;
  DeviceSet to = m.to.devices & ~kept;
  for (DeviceSet from = m.from.devices & ~kept; from != 0; from &= from - 1, to &= to - 1)
    out.emplace_back(std::countr_zero(from), std::countr_zero(to));
  invariant(to == 0, "a slice has as many devices after a move as before");
  return out;
}

ConsolidationPlan plan_consolidation(Engine& engine, std::span<const PlacedRequest> standing,
                                     unsigned wanted) {
  return Planner(engine, standing).run(wanted);
}

}  // namespace carve::place
