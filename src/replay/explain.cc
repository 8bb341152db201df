#include "replay/explain.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "place/explain.h"
#include "place/place.h"
#include "place/repair.h"
#include "replay/inflate.h"

namespace carve::replay {
namespace {

std::string cards_of(place::CardSet set) {
  std::vector<int> cards;
  for (; set != 0; set &= set - 1) cards.push_back(std::countr_zero(set));
  return fmt::format("{} {}", cards.size() == 1 ? "card" : "cards", fmt::join(cards, ", "));
}

}  // namespace

Outcome<Pod> parse_request(std::string_view text, const Cluster& cluster) {
  Pod pod;
  pod.cards = 1, pod.milli = 1000;
  const auto wrong = [&](std::string_view part, std::string_view why) {
    return failure(FailureKind::bad_request, "the request '{}': {}", part.substr(0, 60), why);
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
        if (std::ranges::find(cluster.nodes, m, &Node::model) == cluster.nodes.end())
          return wrong(part, "no node has cards of that model");
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const uint64_t most = field == "num_gpu"      ? place::most_cards
                          : field == "gpu_milli"  ? 1000
                          : field == "cpu_milli"  ? 100'000'000
                          : field == "memory_mib" ? uint64_t{1} << 30
                                                  : 0;
    if (most == 0) return wrong(part, "the fields are num_gpu, gpu_milli, cpu_milli, memory_mib, gpu_spec");
    if (error != std::errc() || end != value.data() + value.size() || number > most)
      return wrong(part, fmt::format("is not a whole number up to {}", most));
    if (field == "num_gpu") pod.cards = static_cast<unsigned>(number);
    if (field == "gpu_milli") pod.milli = static_cast<unsigned>(number);
    if (field == "cpu_milli") pod.cpu_milli = static_cast<uint32_t>(number);
    if (field == "memory_mib") pod.memory_mib = number;
  }
  if (pod.cards == 0) pod.milli = 0;
  return pod;
}

std::string explain(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known, uint64_t seed,
                    unsigned percent, const Pod& request) {
  Setup setup(cluster, trace, strategy, known, seed);
  std::vector<place::Standing> standing;
  uint64_t asked = 0;
  uint64_t held = 0;
  for (const uint32_t i : arrivals(trace, cluster.cards(), seed)) {
    asked += trace.pods[i].demand();
    if (asked * 100 > cluster.cards() * 1000 * percent) break;
    const auto spot = setup.engine.place(setup.kinds[i]);
    if (!spot) continue;
    standing.push_back({setup.kinds[i], *spot});
    held += trace.pods[i].demand();
  }
  const place::Fleet& fleet = setup.engine.fleet();
  const place::Kind kind = setup.engine.kind(ask_of(request, fleet));
  const auto node = [&](uint32_t n) {
    return fmt::format("{} ({})", setup.names[n], fleet.model_name(fleet.node(n).model));
  };
  std::string out = fmt::format(
      "After {} % of the cards were asked for, {:.2f} % are in use ({}, seed {}).\n", percent,
      static_cast<double>(held) / static_cast<double>(cluster.cards()) / 10, text(strategy), seed);
  const place::Refusal refusal = place::explain(fleet, setup.engine.ask(kind));
  if (const auto spot = setup.engine.find(kind))
    return out + fmt::format("It would go to {}, {}: {}.\n{}.\n", node(spot->node), cards_of(spot->cards),
                             place::choice(strategy), refusal.sentence);
  out += refusal.sentence + ".\n";
  if (const auto repair = place::one_move(setup.engine, kind, standing)) {
    const place::Standing& who = standing[repair->who];
    const place::Ask& ask = setup.engine.ask(who.kind);
    out += fmt::format("Moving one request ({} x {} of a card) from {} to {} would make room on {}.\n",
                       ask.cards, text(ask.share).c_str(), node(who.spot.node), node(repair->to.node),
                       node(repair->room.node));
  } else {
    out += "No single move would make room.\n";
  }
  return out;
}

}  // namespace carve::replay
