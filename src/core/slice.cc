#include "core/slice.h"

#include <algorithm>
#include <iterator>

namespace carve {
namespace {

// The words of each enumeration, in the order of its values.
constexpr std::string_view policies[] = {"fixed-share", "guaranteed-burst-share", "native-burst-share"};
constexpr std::string_view classes[] = {"batch", "latency"};
constexpr std::string_view isolations[] = {"none", "memory", "memory+compute"};
constexpr std::string_view strategies[] = {"binpack", "spread",       "first-fit", "best-fit",
                                           "fgd",     "fgd-scarcity", "lookahead"};

constexpr Strategy node_strategies[] = {Strategy::binpack, Strategy::spread};

template <class E, size_t N>
std::optional<E> parse(const std::string_view (&words)[N], std::string_view word) {
  for (size_t i = 0; i < N; ++i)
    if (words[i] == word) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

std::string_view text(Policy p) { return policies[static_cast<size_t>(p)]; }
std::string_view text(LatencyClass c) { return classes[static_cast<size_t>(c)]; }
std::string_view text(Isolation i) { return isolations[static_cast<size_t>(i)]; }
std::string_view text(Strategy s) { return strategies[static_cast<size_t>(s)]; }
std::optional<Policy> parse_policy(std::string_view word) { return parse<Policy>(policies, word); }
std::optional<LatencyClass> parse_latency_class(std::string_view word) {
  return parse<LatencyClass>(classes, word);
}
std::optional<Isolation> parse_isolation(std::string_view word) { return parse<Isolation>(isolations, word); }
std::optional<Strategy> parse_strategy(std::string_view word) { return parse<Strategy>(strategies, word); }

std::optional<Strategy> parse_node_strategy(std::string_view word) {
  const auto strategy = parse_strategy(word);
  return strategy && std::ranges::find(node_strategies, *strategy) != std::end(node_strategies)
             ? strategy
             : std::nullopt;
}

std::string node_strategy_names() {
  std::string names;
  for (const Strategy s : node_strategies) {
    if (!names.empty()) names += s == std::end(node_strategies)[-1] ? " or " : ", ";
    names += text(s);
  }
  return names;
}

}  // namespace carve
