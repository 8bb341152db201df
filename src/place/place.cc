#include "place/place.h"

#include <algorithm>

namespace carve::place {
namespace {

Share needed_share(const Request& r) { return r.exclusive ? whole_device : r.share; }

// What must hold before a request may stand on a card. The first broken rule is the card's reason, so the
// order goes from what nobody can change to what time may change.
struct Rule {
  bool (*holds)(const Card&, const Request&);
  std::string (*otherwise)(const Card&, const Request&);
};

constexpr Rule rules[] = {
    // the device that was named
    {[](const Card& c, const Request& r) { return !r.device || *r.device == c.device.uuid; },
     [](const Card&, const Request& r) { return fmt::format("the request names {}", text(*r.device)); }},
    // health
    {[](const Card& c, const Request&) { return c.trouble.empty(); },
     [](const Card& c, const Request&) { return c.trouble; }},
    // size
    {[](const Card& c, const Request& r) { return need(r, c.device) <= c.device.usable(); },
     [](const Card& c, const Request& r) {
       return fmt::format("{} needed, and only {} of it are usable at all", text(need(r, c.device)).c_str(),
                          text(c.device.usable()).c_str());
     }},
    {[](const Card& c, const Request& r) {
       return r.isolation == Isolation::none || c.context <= need(r, c.device);
     },
     [](const Card& c, const Request& r) {
       return fmt::format("{} is less than the {} that one context takes on it",
                          text(need(r, c.device)).c_str(), text(c.context).c_str());
     }},
    // what its driver can do
    {[](const Card& c, const Request& r) { return r.spill.count == 0 || c.device.migrates; },
     [](const Card&, const Request&) {
       return std::string(
           "its driver cannot move managed memory to the host (no concurrent managed access): leave "
           "--oversubscribe out");
     }},
    // alone, or among others
    {[](const Card& c, const Request&) { return !c.exclusive; },
     [](const Card&, const Request&) { return std::string("one tenant holds the whole device"); }},
    {[](const Card& c, const Request& r) { return !r.exclusive || c.tenants == 0; },
     [](const Card& c, const Request&) {
       return fmt::format("shared by {} tenant{}, and the request wants it alone", c.tenants,
                          c.tenants == 1 ? "" : "s");
     }},
    // the number of tenants
    {[](const Card& c, const Request& r) {
       return r.isolation == Isolation::none || r.exclusive || c.isolated < most_tenants;
     },
     [](const Card&, const Request&) {
       return fmt::format("it has {} isolated tenants, the most there can be", most_tenants);
     }},
    // memory and compute, both on this card
    {[](const Card& c, const Request& r) { return need(r, c.device) <= c.free; },
     [](const Card& c, const Request& r) {
       return fmt::format("{} needed, {} free", text(need(r, c.device)).c_str(), text(c.free).c_str());
     }},
    {[](const Card& c, const Request& r) { return needed_share(r) <= c.free_share; },
     [](const Card& c, const Request& r) {
       return fmt::format("{} of its compute needed, {} free", text(needed_share(r)).c_str(),
                          text(c.free_share).c_str());
     }},
};

Verdict judge(const Card& card, const Request& request) {
  for (const Rule& rule : rules)
    if (!rule.holds(card, request)) return {card.device.index, false, rule.otherwise(card, request)};
  return {
      card.device.index, true,
      fmt::format("fits; {} would stay free", text(minus(card.free, need(request, card.device))).c_str())};
}

// "device 0: 4 GiB needed, 1 GiB free; devices 1, 2: ...": equal reasons are told once.
std::string summarised(const std::vector<Verdict>& verdicts, const Request& request) {
  if (verdicts.empty()) return "this machine has no devices";
  std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
  size_t fitting = 0;
  for (const Verdict& v : verdicts) {
    fitting += v.fits;
    if (v.fits) continue;
    auto group = std::ranges::find(groups, v.sentence, [](const auto& g) -> const auto& { return g.first; });
    if (group == groups.end()) group = groups.insert(group, {v.sentence, {}});
    group->second.push_back(v.index);
  }
  std::string out;
  if (request.devices > 1)
    out =
        fmt::format("{} devices are needed, {} of {} could serve", request.devices, fitting, verdicts.size());
  for (const auto& [sentence, indexes] : groups)
    out += fmt::format("{}device{} {}: {}", out.empty() ? "" : "; ", indexes.size() == 1 ? "" : "s",
                       fmt::join(indexes, ", "), sentence);
  return out;
}

}  // namespace

Policy policy(Strategy strategy) { return strategy == Strategy::spread ? spread() : binpack(); }

Answer place(std::span<const Card> cards, const Request& request, Policy chosen) {
  Answer answer;
  std::vector<size_t> candidates;
  for (size_t i = 0; i < cards.size(); ++i) {
    answer.verdicts.push_back(judge(cards[i], request));
    if (answer.verdicts.back().fits) candidates.push_back(i);
  }
  if (candidates.empty() || candidates.size() < request.devices) {
    answer.summary = summarised(answer.verdicts, request);
    return answer;
  }
  chosen(cards, request, candidates);
  candidates.resize(request.devices);
  std::ranges::sort(candidates);

  // A part of devices of different sizes comes out as the smallest of them, so that the parts are equal.
  Bytes memory = need(request, cards[candidates[0]].device);
  if (!request.exclusive)
    for (const size_t i : candidates) memory = std::min(memory, need(request, cards[i].device));
  answer.placement = Placement{std::move(candidates), memory, needed_share(request)};
  return answer;
}

}  // namespace carve::place
