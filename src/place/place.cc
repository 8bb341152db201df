#include "place/place.h"

#include <algorithm>
#include <bit>

#include "core/invariant.h"
#include "place/consolidation.h"
#include "place/engine.h"
#include "place/explain.h"
#include "place/rules.h"

namespace carve::place {
namespace {

DeviceState state_of(const DeviceSnapshot& c) {
  DeviceState s;
  s.usable = c.device.usable();
  s.free = c.free;
  s.context = c.context;
  s.free_share = c.free_share;
  s.slices = static_cast<uint8_t>(std::min(c.slices, 255u));
  s.isolated = static_cast<uint8_t>(std::min(c.isolated, 255u));
  s.exclusive = c.exclusive;
  s.sick = !c.trouble.empty();
  s.migrates = c.device.migrates;
  s.shared_out = c.shared_out;
  if (c.policy) s.policy = static_cast<uint8_t>(*c.policy);
  return s;
}

Verdict judge(const DeviceSnapshot& snapshot, const DeviceState& state, uint32_t number,
              const RequestShape& shape, const Request& request) {
  for (const DeviceRule& rule : device_rules()) {
    if (rule.holds(state, number, shape)) continue;
    const std::string named = request.device ? text(*request.device) : std::string();
    return {snapshot.device.index, false, rule.otherwise(state, shape, {snapshot.trouble, named})};
  }
  return {snapshot.device.index, true,
          fmt::format("fits; {} would stay free", text(minus(snapshot.free, need(shape, state))).c_str())};
}

// Judges one part of a placed request, as a request for one device.
Verdict judge_part(const DeviceSnapshot& device, const PlacedPart& part, const Request& whole,
                   const Fleet& fleet) {
  Request request = whole;
  request.placed.clear();
  request.devices = 1;
  request.isolation = whole.isolated();
  request.device = part.device;
  if (!whole.exclusive) {
    request.memory = PerDevice{part.memory};
    request.share = part.share;
  } else if (part.memory.count != 0 && part.memory != device.device.usable()) {
    return {device.device.index, false,
            fmt::format("a whole device was placed with {}, and it has {} usable", text(part.memory).c_str(),
                        text(device.device.usable()).c_str())};
  }
  return judge(device, state_of(device), 0, shape_of(request, fleet), request);
}

// Returns "device 0: 4 GiB needed, 1 GiB free; devices 1, 2: ...". Equal reasons appear once.
std::string summarised(const std::vector<Verdict>& verdicts, const Request& request) {
  if (verdicts.empty()) return "the node has no devices";
  std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
  size_t fitting_devices = 0;
  for (const Verdict& v : verdicts) {
    fitting_devices += v.fits;
    if (v.fits) continue;
    auto group = std::ranges::find(groups, v.sentence, [](const auto& g) -> const auto& { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {v.sentence, {}});
    group->second.push_back(v.index);
  }
  std::string out;
  if (request.devices > 1)
    out = fmt::format("{} devices are needed, {} of {} could serve", request.devices, fitting_devices,
                      verdicts.size());
  for (const auto& [sentence, indexes] : groups)
    out += fmt::format("{}device{} {}: {}", out.empty() ? "" : "; ", indexes.size() == 1 ? "" : "s",
                       fmt::join(indexes, ", "), sentence);
  return out;
}

// Adds the node to the engine's fleet.
uint32_t add_machine(Engine& engine, std::span<const DeviceState> states) {
  NodeState machine;
  machine.model = static_cast<uint8_t>(*engine.fleet().model("this machine's"));
  machine.cpu_free = UINT32_MAX;
  machine.host_free = {UINT64_MAX};
  return engine.fleet().add(machine, states);
}

// Returns the placed slices as requests of the engine. The devices' snapshots count them already.
std::vector<PlacedRequest> standing_of(Engine& engine, uint32_t here,
                                       std::span<const PlacedSlice> placed_slices) {
  std::vector<PlacedRequest> standing;
  for (const PlacedSlice& r : placed_slices) {
    RequestShape shape;
    shape.devices = static_cast<uint8_t>(r.devices.size());
    shape.exclusive = r.exclusive;
    shape.isolated = r.isolated;
    shape.best_effort = r.best_effort;
    if (r.policy) shape.policy = static_cast<uint8_t>(*r.policy);
    if (!r.exclusive) shape.memory = r.memory, shape.share = r.share;
    Assignment assignment{here, 0, r.memory};
    for (const size_t i : r.devices) {
      invariant(i < engine.fleet().devices(here).size(), "a placed slice names devices of the snapshot");
      assignment.devices |= 1u << i;
    }
    standing.push_back({engine.request_class(shape), assignment, engine.application(r.application)});
    engine.add_replica(standing.back().application, assignment);
  }
  return standing;
}

// Returns "; moving 'a' (10 GiB) from device 0 to device 1 would make room" if one move does.
std::string move_for(Engine& engine, RequestClass wanted, Application application,
                     std::span<const DeviceSnapshot> devices, std::span<const PlacedSlice> placed_slices,
                     std::span<const PlacedRequest> standing) {
  const auto repair = propose_migration(engine, wanted, standing, application);
  if (!repair) return "";
  const auto named = [&](DeviceSet set) {
    std::vector<unsigned> indexes;
    for (; set != 0; set &= set - 1)
      indexes.push_back(devices[static_cast<size_t>(std::countr_zero(set))].device.index);
    return fmt::format("device{} {}", indexes.size() == 1 ? "" : "s", fmt::join(indexes, ", "));
  };
  return fmt::format("; moving '{}' ({}) from {} to {} would make room", placed_slices[repair->who].name,
                     text(repair->moved).c_str(), named(standing[repair->who].assignment.devices),
                     named(repair->to.devices));
}

}  // namespace

std::string_view choice(Strategy strategy) {
  switch (strategy) {
    case Strategy::binpack: return "the fullest device that fits, of the fullest node";
    case Strategy::spread: return "the emptiest device of the emptiest node";
    case Strategy::first_fit: return "the first node that fits, its lowest devices";
    case Strategy::best_fit: return "the node with least CPU and compute left";
    case Strategy::fgd: return "the place where unusable free capacity grows least";
    case Strategy::fgd_scarcity:
      return "the place where unusable free capacity grows least, outside what is kept for expected requests";
    case Strategy::lookahead: return "the place where expected requests lose least";
  }
  return "";
}

Answer place(std::span<const DeviceSnapshot> devices, const Request& request, Strategy strategy,
             std::span<const PlacedSlice> placed_slices, const Topology* links) {
  Engine engine(strategy);
  std::vector<DeviceState> states;
  for (const DeviceSnapshot& device : devices) states.push_back(state_of(device));
  const uint32_t here = add_machine(engine, states);
  if (links != nullptr) engine.fleet().set_topology(here, *links);

  RequestShape shape = shape_of(request, engine.fleet());
  // A node serves every request: models are for a choice among nodes.
  shape.models = any_model;
  shape.cpu_milli = 0;
  shape.host_memory = {};
  if (request.device)
    shape.only = static_cast<uint32_t>(
        std::ranges::find(devices, *request.device, [](const DeviceSnapshot& c) { return c.device.uuid; }) -
        devices.begin());
  Answer answer;
  for (uint32_t i = 0; i < devices.size(); ++i)
    answer.verdicts.push_back(judge(devices[i], states[i], i, shape, request));
  const std::vector<PlacedRequest> standing = standing_of(engine, here, placed_slices);
  const Application application = engine.application(request.application);
  const auto assignment = engine.find(engine.request_class(shape), application);
  if (!assignment) {
    answer.summary = summarised(answer.verdicts, request);
    if (const std::string advice = explain(engine.fleet(), shape).advice; !advice.empty())
      answer.summary += "; " + advice;
    answer.summary +=
        move_for(engine, engine.request_class(shape), application, devices, placed_slices, standing);
    return answer;
  }
  Placement placement{{}, assignment->memory, needed_share(shape), {}};
  if (links != nullptr && shape.devices > 1) placement.connected = links->loosest(assignment->devices);
  for (DeviceSet set = assignment->devices; set != 0; set &= set - 1)
    placement.devices.push_back(static_cast<size_t>(std::countr_zero(set)));
  answer.placement = std::move(placement);
  return answer;
}

Answer check_placed(std::span<const DeviceSnapshot> devices, const Request& request) {
  invariant(!request.placed.empty(), "the parts were placed");
  const Fleet fleet;
  Answer answer;
  for (const DeviceSnapshot& device : devices)
    answer.verdicts.push_back({device.device.index, false, "the request names other devices"});
  Placement placement{{}, request.placed.front().memory, request.first_share(), {}};
  std::vector<std::string> refused;
  for (const PlacedPart& part : request.placed) {
    const auto at = static_cast<size_t>(
        std::ranges::find(devices, part.device, [](const DeviceSnapshot& c) { return c.device.uuid; }) -
        devices.begin());
    if (at == devices.size()) {
      refused.push_back(fmt::format("there is no device {}", text(part.device)));
      continue;
    }
    Verdict& verdict = answer.verdicts[at];
    verdict = judge_part(devices[at], part, request, fleet);
    placement.devices.push_back(at);
    if (!verdict.fits) refused.push_back(fmt::format("device {}: {}", verdict.index, verdict.sentence));
  }
  if (refused.empty())
    answer.placement = std::move(placement);
  else
    answer.summary = fmt::format("{}", fmt::join(refused, "; "));
  return answer;
}

Plan plan(std::span<const DeviceSnapshot> devices, Strategy strategy,
          std::span<const PlacedSlice> placed_slices, unsigned wanted, const Topology* links) {
  Engine engine(strategy);
  std::vector<DeviceState> states;
  for (const DeviceSnapshot& device : devices) states.push_back(state_of(device));
  const uint32_t here = add_machine(engine, states);
  if (links != nullptr) engine.fleet().set_topology(here, *links);
  const ConsolidationPlan found =
      plan_consolidation(engine, standing_of(engine, here, placed_slices), wanted);
  Plan out;
  for (const ConsolidationPlan::Emptied& e : found.emptied) out.emptied.push_back(e.device);
  for (const Move& m : found.moves)
    for (const auto& [from, to] : exchanged(m)) out.moves.push_back({m.who, from, to});
  out.moved = found.moved;
  return out;
}

}  // namespace carve::place
