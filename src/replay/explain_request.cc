#include "replay/explain_request.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "place/explain.h"
#include "place/migration.h"
#include "place/place.h"
#include "replay/inflate.h"

namespace carve::replay {
namespace {

std::string devices_of(place::DeviceSet set) {
  std::vector<int> devices;
  for (; set != 0; set &= set - 1) devices.push_back(std::countr_zero(set));
  return fmt::format("{} {}", devices.size() == 1 ? "device" : "devices", fmt::join(devices, ", "));
}

// Returns the explanation of the request in this fleet.
Explanation answer(place::Engine& engine, const std::vector<std::string_view>& names, Strategy strategy,
                   std::span<const place::PlacedRequest> standing, const Pod& request) {
  const place::Fleet& fleet = engine.fleet();
  const place::RequestClass request_class = engine.request_class(shape_of(request, fleet));
  const auto node = [&](uint32_t n) {
    return fmt::format("{} ({})", names[n], fleet.model_name(fleet.node(n).model));
  };
  const place::Refusal refusal = place::explain(fleet, engine.shape(request_class));
  if (const auto assignment = engine.find(request_class)) {
    std::string out = fmt::format("It would be placed on {}, {}: {}", node(assignment->node),
                                  devices_of(assignment->devices), place::choice(strategy));
    if (const place::Topology* links = fleet.topology(assignment->node);
        links != nullptr && std::popcount(assignment->devices) > 1)
      out += fmt::format("; they are connected by {}", text(links->loosest(assignment->devices)));
    return {out + fmt::format(".\n{}.\n", refusal.message), true};
  }
  std::string out = refusal.message + ".\n";
  const auto migration = place::propose_migration(engine, request_class, standing);
  if (!migration) return {out + "No single move would make room.\n", false};
  const place::PlacedRequest& who = standing[migration->who];
  const place::RequestShape& shape = engine.shape(who.request_class);
  std::string size = fmt::format("{} x", shape.devices);
  if (migration->moved.count != 0 && shape.memory.count != 0)
    size += fmt::format(" {}", text(shape.memory).c_str());
  if (shape.share.basis_points != 0 || shape.memory.count == 0)
    size += fmt::format(" {} of a device", text(shape.share).c_str());
  out += fmt::format("Moving one request ({}) from {} to {} would make room on {}.\n", size,
                     node(who.assignment.node), node(migration->to.node), node(migration->room.node));
  return {out, false};
}

std::vector<std::string_view> names_of(const Snapshot& snapshot) {
  std::vector<std::string_view> out;
  for (const Snapshot::Node& n : snapshot.nodes) out.emplace_back(n.name);
  return out;
}

}  // namespace

std::vector<std::string_view> models_of(const Cluster& cluster) {
  std::vector<std::string_view> out;
  for (const Node& n : cluster.nodes) out.emplace_back(n.model);
  return out;
}

std::vector<std::string_view> models_of(const Snapshot& snapshot) {
  std::vector<std::string_view> out;
  for (const Snapshot::Node& n : snapshot.nodes) out.emplace_back(n.model);
  return out;
}

Outcome<Pod> parse_request(std::string_view text, const std::vector<std::string_view>& models) {
  Pod pod;
  pod.devices = 1, pod.milli = 1000;
  bool said_milli = false;
  const auto wrong = [&](std::string_view part, std::string_view why) {
    return failure(FailureKind::invalid_argument, "the request '{}': {}", part.substr(0, 60), why);
  };
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const size_t equals = part.find('=');
    if (equals == part.npos) return wrong(part, "is not FIELD=VALUE");
    const std::string_view field = part.substr(0, equals);
    const std::string_view value = part.substr(equals + 1);
    if (field == "gpu_spec") {
      pod.models = split_models(value);
      for (const std::string& m : pod.models)
        if (std::ranges::find(models, m) == models.end())
          return wrong(part, "no node has devices of that model");
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const uint64_t most = field == "num_gpu"                                   ? place::max_node_devices
                          : field == "gpu_milli"                               ? 1000
                          : field == "cpu_milli"                               ? 100'000'000
                          : field == "memory_mib" || field == "gpu_memory_mib" ? uint64_t{1} << 30
                                                                               : 0;
    if (most == 0)
      return wrong(
          part, "unknown field; use num_gpu, gpu_milli, gpu_memory_mib, gpu_spec, cpu_milli or memory_mib");
    if (error != std::errc() || end != value.data() + value.size() || number > most)
      return wrong(part, fmt::format("is not a whole number up to {}", most));
    if (field == "num_gpu") pod.devices = static_cast<unsigned>(number);
    if (field == "gpu_milli") pod.milli = static_cast<unsigned>(number), said_milli = true;
    if (field == "gpu_memory_mib") pod.device_memory_mib = number;
    if (field == "cpu_milli") pod.cpu_milli = static_cast<uint32_t>(number);
    if (field == "memory_mib") pod.memory_mib = number;
  }
  if (pod.devices == 0 || (pod.device_memory_mib != 0 && !said_milli)) pod.milli = 0;
  if (pod.devices == 0) pod.device_memory_mib = 0;
  return pod;
}

Explanation explain(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known, uint64_t seed,
                    unsigned percent, const Pod& request) {
  Setup setup(cluster, trace, strategy, known, seed);
  std::vector<place::PlacedRequest> standing;
  uint64_t asked = 0;
  uint64_t held = 0;
  for (const uint32_t i : arrivals(trace, cluster.devices(), seed)) {
    asked += trace.pods[i].demand();
    if (asked * 100 > cluster.devices() * 1000 * percent) break;
    const auto assignment = setup.engine.place(setup.classes[i]);
    if (!assignment) continue;
    standing.push_back({setup.classes[i], *assignment});
    held += trace.pods[i].demand();
  }
  Explanation out = answer(setup.engine, setup.names, strategy, standing, request);
  out.text = fmt::format("After requests for {} % of the devices, {:.2f} % are in use ({}, seed {}).\n",
                         percent, static_cast<double>(held) / static_cast<double>(cluster.devices()) / 10,
                         text(strategy), seed) +
             out.text;
  return out;
}

Explanation explain(const Snapshot& snapshot, Strategy strategy, const Pod& request) {
  Scene scene(snapshot, strategy);
  return answer(scene.engine, names_of(snapshot), strategy, scene.standing, request);
}

namespace {

place::ConsolidationPlan planned(const Snapshot& snapshot, Strategy strategy, unsigned devices) {
  Scene scene(snapshot, strategy);
  return place::plan_consolidation(scene.engine, scene.standing, devices);
}

}  // namespace

std::string consolidation_table(const Snapshot& snapshot, Strategy strategy, unsigned devices) {
  const place::ConsolidationPlan plan = planned(snapshot, strategy, devices);
  const auto at = [&](const place::Assignment& s) {
    std::vector<int> set;
    for (place::DeviceSet c = s.devices; c != 0; c &= c - 1) set.push_back(std::countr_zero(c));
    return fmt::format("{} device{} {}", snapshot.nodes[s.node].name, set.size() == 1 ? "" : "s",
                       fmt::join(set, ","));
  };
  std::string out;
  for (const place::Move& m : plan.moves) {
    const Snapshot::PlacedSlice& who = snapshot.held[m.who];
    out += fmt::format("{:<24} {:<24} -> {:<24} {:>10} {:>8}\n", who.name, at(m.from), at(m.to),
                       text(m.from.memory).c_str(), text(who.shape.share).c_str());
  }
  out += fmt::format("{} move{} of {} in total would leave {} more device{} empty", plan.moves.size(),
                     plan.moves.size() == 1 ? "" : "s", text(plan.moved).c_str(), plan.emptied.size(),
                     plan.emptied.size() == 1 ? "" : "s");
  if (plan.emptied.size() < devices) out += fmt::format(", but no plan was found for {}", devices);
  return out + ". No slice was moved.\n";
}

std::string consolidation_json(const Snapshot& snapshot, Strategy strategy, unsigned devices) {
  const place::ConsolidationPlan plan = planned(snapshot, strategy, devices);
  nlohmann::ordered_json out;
  out["wanted"] = devices;
  out["emptied"] = nlohmann::ordered_json::array();
  for (const auto& [node, device] : plan.emptied)
    out["emptied"].push_back({{"node", snapshot.nodes[node].name}, {"device", device}});
  out["moves"] = nlohmann::ordered_json::array();
  const auto at = [&](const place::Assignment& s, unsigned device) -> nlohmann::ordered_json {
    return {{"node", snapshot.nodes[s.node].name}, {"device", device}};
  };
  // A slice of several devices has one row for each device that it leaves.
  for (const place::Move& m : plan.moves)
    for (const auto& [from, to] : place::exchanged(m))
      out["moves"].push_back({{"name", snapshot.held[m.who].name},
                              {"from", at(m.from, from)},
                              {"to", at(m.to, to)},
                              {"memory_bytes", m.from.memory_on(from).count},
                              {"share_bp", snapshot.held[m.who].shape.share.basis_points}});
  out["moved_bytes"] = plan.moved.count;
  out["moved_share_bp"] = plan.moved_share;
  return out.dump(2) + "\n";
}

}  // namespace carve::replay
