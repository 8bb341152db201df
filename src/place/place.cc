#include "place/place.h"

#include <algorithm>
#include <bit>
#include <functional>

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

// Checks a request with the same amounts on each device.
Verdict judge_equal(const DeviceSnapshot& snapshot, const DeviceState& state, uint32_t number,
                    const RequestShape& shape, const Request& request) {
  for (const DeviceRule& rule : device_rules()) {
    if (rule.holds(state, number, shape)) continue;
    const std::string named = request.device ? text(*request.device) : std::string();
    return {snapshot.device.index, false, rule.otherwise(state, shape, {snapshot.trouble, named})};
  }
  return {snapshot.device.index, true,
          fmt::format("fits; {} would stay free", text(minus(snapshot.free, need(shape, state))).c_str())};
}

// Returns a part's name for messages: "part 2 (4 GiB, 10%)".
std::string part_name(const RequestShape& shape, unsigned i) {
  const PartShape part = part_of(shape, i);
  const std::string memory =
      part.part.basis_points != 0 ? text(part.part).c_str() : text(part.memory).c_str();
  const std::string share =
      part.share.basis_points != 0 ? fmt::format(", {}", text(part.share).c_str()) : std::string();
  return fmt::format("part {} ({}{})", i + 1, memory, share);
}

// Checks whether a part of the request fits on the device. If several fit, the message names the largest; if
// none fits, it is about the smallest.
Verdict judge(const DeviceSnapshot& snapshot, const DeviceState& state, uint32_t number,
              const RequestShape& shape, const Request& request) {
  if (shape.parts.empty()) return judge_equal(snapshot, state, number, shape, request);
  const auto order = largest_first(shape);
  Verdict out;
  for (unsigned k = 0; k < shape.devices; ++k) {
    out = judge_equal(snapshot, state, number, shape_of_part(shape, order[k]), request);
    out.message = fmt::format("{}: {}", part_name(shape, order[k]), out.message);
    if (out.fits) break;
  }
  return out;
}

// Checks one part of a placed request as if it were a request for one device.
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
            fmt::format("the request is for a whole device of {}, but the device has {} usable",
                        text(part.memory).c_str(), text(device.device.usable()).c_str())};
  }
  return judge_equal(device, state_of(device), 0, shape_of(request, fleet), request);
}

// Returns "device 0: 4 GiB needed, 1 GiB free; devices 1, 2: ...". Equal reasons are combined.
std::string reasons_of(const std::vector<Verdict>& verdicts) {
  std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
  for (const Verdict& v : verdicts) {
    if (v.fits) continue;
    auto group = std::ranges::find(groups, v.message, [](const auto& g) -> const auto& { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {v.message, {}});
    group->second.push_back(v.index);
  }
  std::string out;
  for (const auto& [message, indexes] : groups)
    out += fmt::format("{}device{} {}: {}", out.empty() ? "" : "; ", indexes.size() == 1 ? "" : "s",
                       fmt::join(indexes, ", "), message);
  return out;
}

// Returns why a node with these verdicts cannot serve the request.
std::string summarised(const std::vector<Verdict>& verdicts, const Request& request) {
  if (verdicts.empty()) return "the node has no devices";
  const std::string reasons = reasons_of(verdicts);
  if (request.devices == 1) return reasons;
  return fmt::format("{} devices are needed, but only {} of {} fit{}{}", request.devices,
                     std::ranges::count(verdicts, true, &Verdict::fits), verdicts.size(),
                     reasons.empty() ? "" : "; ", reasons);
}

// Returns which devices fit each of a request's differing parts, or why none fits.
std::string parts_summary(std::span<const DeviceSnapshot> devices, std::span<const DeviceState> states,
                          const RequestShape& shape, const Request& request) {
  if (devices.size() < shape.devices)
    return fmt::format("{} parts need a device each, but the node has {}", shape.devices, devices.size());
  std::string out = fmt::format("{} parts need a device each", shape.devices);
  for (unsigned part = 0; part < shape.devices; ++part) {
    const RequestShape one = shape_of_part(shape, part);
    std::vector<Verdict> verdicts;
    std::vector<unsigned> fit;
    for (uint32_t i = 0; i < devices.size(); ++i) {
      verdicts.push_back(judge_equal(devices[i], states[i], i, one, request));
      if (verdicts.back().fits) fit.push_back(verdicts.back().index);
    }
    out += fmt::format("; {}", part_name(shape, part));
    if (fit.empty())
      out += fmt::format(" fits on no device: {}", reasons_of(verdicts));
    else
      out += fmt::format(" fits on device{} {}{}", fit.size() == 1 ? "" : "s", fmt::join(fit, ", "),
                         fit.size() == 1 ? " only" : "");
  }
  return out;
}

// Returns the most frequent size of usable memory and the number of devices that have it.
std::pair<unsigned, Bytes> most_frequent_size(std::span<const DeviceSnapshot> devices) {
  std::pair<unsigned, Bytes> out;
  for (const DeviceSnapshot& device : devices) {
    const auto same = static_cast<unsigned>(std::ranges::count(
        devices, device.device.usable(), [](const DeviceSnapshot& d) { return d.device.usable(); }));
    if (same > out.first) out = {same, device.device.usable()};
  }
  return out;
}

// Returns why the node cannot provide a percentage on this many devices even if all were free. Empty if it
// can.
std::string unequal_sizes(std::span<const DeviceSnapshot> devices, const RequestShape& shape) {
  if (!needs_one_size(shape) || devices.size() < shape.devices) return "";
  if (most_frequent_size(devices).first >= shape.devices) return "";
  const Device& first = devices.front().device;
  const auto other = std::ranges::find_if(
      devices, [&](const DeviceSnapshot& d) { return d.device.usable() != first.usable(); });
  invariant(other != devices.end(), "some device has another size than the first one");
  std::vector<uint64_t> sizes;
  for (const DeviceSnapshot& device : devices) sizes.push_back(device.device.usable().count);
  std::ranges::sort(sizes, std::greater());
  DeviceState smallest;
  smallest.usable = {sizes[shape.devices - 1u]};
  return fmt::format(
      "{} of the memory of {} devices: devices {} and {} have {} and {} usable, so the percentage is not the "
      "same amount on each; request a number of bytes, such as {}",
      text(shape.part).c_str(), shape.devices, first.index, other->device.index, text(first.usable()).c_str(),
      text(other->device.usable()).c_str(), text(need(shape, smallest)).c_str());
}

// Adds the node to the engine's fleet.
uint32_t add_machine(Engine& engine, std::span<const DeviceState> states) {
  NodeState machine;
  machine.model = static_cast<uint8_t>(*engine.fleet().model("this machine's"));
  machine.cpu_free = UINT32_MAX;
  machine.host_free = {UINT64_MAX};
  return engine.fleet().add(machine, states);
}

// Returns the placed slices as requests of the engine. The snapshots of the devices already include them.
std::vector<PlacedRequest> standing_of(Engine& engine, uint32_t here,
                                       std::span<const PlacedSlice> placed_slices) {
  std::vector<PlacedRequest> standing;
  for (const PlacedSlice& r : placed_slices) {
    RequestShape shape;
    shape.devices = static_cast<uint8_t>(r.parts.size());
    shape.exclusive = r.exclusive;
    shape.isolated = r.isolated;
    shape.best_effort = r.best_effort;
    if (r.policy) shape.policy = static_cast<uint8_t>(*r.policy);
    const PlacementPart& first = r.parts.front();
    const bool are_equal = std::ranges::all_of(r.parts, [&](const PlacementPart& part) {
      return part.memory == first.memory && part.share == first.share;
    });
    if (!r.exclusive && are_equal) shape.memory = first.memory, shape.share = first.share;
    Assignment assignment{here, 0, first.memory};
    for (const PlacementPart& part : r.parts) {
      invariant(part.device < engine.fleet().devices(here).size(),
                "a placed slice names devices of the snapshot");
      assignment.devices |= 1u << part.device;
      if (r.exclusive || are_equal) continue;
      shape.parts.push_back({.memory = part.memory, .share = part.share});
      assignment.parts.push_back({static_cast<unsigned>(part.device), part.memory});
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

std::vector<size_t> Placement::devices() const {
  std::vector<size_t> out;
  for (const PlacementPart& part : parts) out.push_back(part.device);
  return out;
}

std::string_view choice(Strategy strategy) {
  switch (strategy) {
    case Strategy::binpack: return "the fullest device that fits, on the fullest node";
    case Strategy::spread: return "the emptiest device on the emptiest node";
    case Strategy::first_fit: return "the first node that fits, with its lowest-numbered devices";
    case Strategy::best_fit: return "the node with the least CPU and compute left";
    case Strategy::fgd: return "the placement that adds the least unusable free capacity";
    case Strategy::fgd_scarcity:
      return "the placement that adds the least unusable free capacity, outside the capacity that is kept "
             "for "
             "expected requests";
    case Strategy::lookahead: return "the placement that costs expected requests the least capacity";
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
  // Models only choose among nodes, so the model is not checked on a single node.
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
    if (std::string unequal = unequal_sizes(devices, shape); !unequal.empty()) {
      answer.summary = answer.reasons = std::move(unequal);
      answer.is_lasting = true;
      return answer;
    }
    answer.summary = shape.parts.empty() ? summarised(answer.verdicts, request)
                                         : parts_summary(devices, states, shape, request);
    if (needs_one_size(shape))
      answer.summary += "; a percentage requires devices with the same amount of memory";
    answer.reasons = answer.summary;
    if (const std::string advice = explain(engine.fleet(), shape).advice; !advice.empty())
      answer.summary += "; " + advice;
    answer.summary +=
        move_for(engine, engine.request_class(shape), application, devices, placed_slices, standing);
    return answer;
  }
  Placement placement;
  if (links != nullptr && shape.devices > 1) placement.connected = links->loosest(assignment->devices);
  const std::vector<PartPlace> places = assignment->places();
  for (unsigned i = 0; i < places.size(); ++i)
    placement.parts.push_back(
        {places[i].device, need(shape, i, states[places[i].device]), needed_share(shape, i)});
  // If the parts differ, each chosen device's verdict is about the part that is placed on it.
  for (unsigned i = 0; i < places.size() && !shape.parts.empty(); ++i) {
    const unsigned device = places[i].device;
    answer.verdicts[device] =
        judge_equal(devices[device], states[device], device, shape_of_part(shape, i), request);
    answer.verdicts[device].message =
        fmt::format("{}: {}", part_name(shape, i), answer.verdicts[device].message);
  }
  answer.placement = std::move(placement);
  return answer;
}

Answer check_placed(std::span<const DeviceSnapshot> devices, const Request& request) {
  invariant(!request.placed.empty(), "the parts were placed");
  const Fleet fleet;
  Answer answer;
  for (const DeviceSnapshot& device : devices)
    answer.verdicts.push_back({device.device.index, false, "the request names other devices"});
  Placement placement;
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
    const Device& device = devices[at].device;
    placement.parts.push_back(request.exclusive ? PlacementPart{at, device.usable(), whole_device}
                                                : PlacementPart{at, part.memory, part.share});
    if (!verdict.fits) refused.push_back(fmt::format("device {}: {}", verdict.index, verdict.message));
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
