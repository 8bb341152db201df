#include "place/place.h"

#include <algorithm>
#include <bit>

#include "place/engine.h"
#include "place/rules.h"

namespace carve::place {
namespace {

CardState state_of(const Card& c) {
  CardState s;
  s.usable = c.device.usable();
  s.free = c.free;
  s.context = c.context;
  s.free_share = c.free_share;
  s.tenants = static_cast<uint8_t>(std::min(c.tenants, 255u));
  s.isolated = static_cast<uint8_t>(std::min(c.isolated, 255u));
  s.exclusive = c.exclusive;
  s.sick = !c.trouble.empty();
  s.migrates = c.device.migrates;
  s.shared_out = c.shared_out;
  if (c.policy) s.policy = static_cast<uint8_t>(*c.policy);
  return s;
}

Verdict judge(const Card& card, const CardState& state, uint32_t number, const Ask& ask,
              const Request& request) {
  for (const CardRule& rule : card_rules()) {
    if (rule.holds(state, number, ask)) continue;
    const std::string named = request.device ? text(*request.device) : std::string();
    return {card.device.index, false, rule.otherwise(state, ask, {card.trouble, named})};
  }
  return {card.device.index, true,
          fmt::format("fits; {} would stay free", text(minus(card.free, need(ask, state))).c_str())};
}

// "device 0: 4 GiB needed, 1 GiB free; devices 1, 2: ...": equal reasons are told once.
std::string summarised(const std::vector<Verdict>& verdicts, const Request& request) {
  if (verdicts.empty()) return "this machine has no devices";
  std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
  size_t fitting_cards = 0;
  for (const Verdict& v : verdicts) {
    fitting_cards += v.fits;
    if (v.fits) continue;
    auto group = std::ranges::find(groups, v.sentence, [](const auto& g) -> const auto& { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {v.sentence, {}});
    group->second.push_back(v.index);
  }
  std::string out;
  if (request.devices > 1)
    out = fmt::format("{} devices are needed, {} of {} could serve", request.devices, fitting_cards,
                      verdicts.size());
  for (const auto& [sentence, indexes] : groups)
    out += fmt::format("{}device{} {}: {}", out.empty() ? "" : "; ", indexes.size() == 1 ? "" : "s",
                       fmt::join(indexes, ", "), sentence);
  return out;
}

}  // namespace

Answer place(std::span<const Card> cards, const Request& request, Strategy strategy) {
  Engine engine(strategy);
  std::vector<CardState> states;
  for (const Card& card : cards) states.push_back(state_of(card));
  NodeState machine;
  machine.model = static_cast<uint8_t>(*engine.fleet().model("this machine's"));
  machine.cpu_free = UINT32_MAX;
  machine.host_free = {UINT64_MAX};
  engine.fleet().add(machine, states);

  Ask ask = ask_of(request, engine.fleet());
  ask.models =
      any_model;  // A machine serves whoever asks it: models are for those who choose among machines.
  ask.cpu_milli = 0;
  ask.host_memory = {};
  if (request.device)
    ask.only = static_cast<uint32_t>(
        std::ranges::find(cards, *request.device, [](const Card& c) { return c.device.uuid; }) -
        cards.begin());
  Answer answer;
  for (uint32_t i = 0; i < cards.size(); ++i)
    answer.verdicts.push_back(judge(cards[i], states[i], i, ask, request));
  const auto spot = engine.find(engine.kind(ask));
  if (!spot) {
    answer.summary = summarised(answer.verdicts, request);
    return answer;
  }
  Placement placement{{}, spot->memory, needed_share(ask)};
  for (CardSet set = spot->cards; set != 0; set &= set - 1)
    placement.cards.push_back(static_cast<size_t>(std::countr_zero(set)));
  answer.placement = std::move(placement);
  return answer;
}

}  // namespace carve::place
