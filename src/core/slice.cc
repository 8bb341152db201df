#include "core/slice.h"

#include <algorithm>
#include <iterator>

namespace carve {
namespace {

constexpr Strategy node_strategies[] = {Strategy::binpack, Strategy::spread};

}  // namespace

std::optional<Strategy> parse_node_strategy(std::string_view word) {
  const auto strategy = parse<Strategy>(word);
  return strategy && std::ranges::find(node_strategies, *strategy) != std::end(node_strategies)
             ? strategy
             : std::nullopt;
}

std::string node_strategy_names() {
  std::vector<std::string_view> words;
  for (const Strategy s : node_strategies) words.push_back(text(s));
  return choice(words);
}

bool Slice::has_equal_parts() const {
  return std::ranges::all_of(parts, [this](const SlicePart& part) {
    return part.memory == parts.front().memory && part.share == parts.front().share;
  });
}

}  // namespace carve
