#include "core/label.h"

#include <algorithm>

namespace carve {

Outcome<std::pair<std::string, std::optional<std::string>>> parse_label_change(const std::string& word) {
  const auto wrong =
      failure(FailureKind::invalid_argument, "'{}' must be KEY=VALUE or KEY-, in printable ASCII",
              word.size() > 80 ? word.substr(0, 77) + "..." : word);
  if (word.size() > 2 * max_label_bytes ||
      std::ranges::any_of(word, [](char c) { return c < ' ' || c > '~'; }))
    return wrong;
  const size_t equal = word.find('=');
  if (equal != std::string::npos && equal != 0)
    return std::pair{word.substr(0, equal), std::optional(word.substr(equal + 1))};
  if (equal == std::string::npos && word.size() > 1 && word.ends_with('-'))
    return std::pair{word.substr(0, word.size() - 1), std::optional<std::string>()};
  return wrong;
}

LabelMeaning meaning_of(const std::string& key) {
  static const std::map<std::string, LabelMeaning> meanings = {
      {policy_label, LabelMeaning::policy},
      {"carve.dev/compute-policy", LabelMeaning::policy},
      {"carve.dev/memory-unit", LabelMeaning::memory_unit},
      {"gpuMemoryUnit", LabelMeaning::memory_unit},
      {"carve.dev/mode", LabelMeaning::placement},
      {"ack.node.gpu.schedule", LabelMeaning::placement},
      {"vke.node.gpu.schedule", LabelMeaning::placement},
      {"carve.dev/placement", LabelMeaning::placement},
      {"ack.node.gpu.placement", LabelMeaning::placement},
  };
  const auto found = meanings.find(key);
  return found == meanings.end() ? LabelMeaning::none : found->second;
}

bool is_system_label(const std::string& key) { return meaning_of(key) == LabelMeaning::policy; }

}  // namespace carve
