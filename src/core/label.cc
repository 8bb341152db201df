#include "core/label.h"

#include <algorithm>

namespace carve {

using K = FailureKind;

Outcome<std::pair<std::string, std::optional<std::string>>> parse_label_change(const std::string& word) {
  const auto wrong = failure(K::invalid_argument, "'{}' is not KEY=VALUE or KEY- in printable ASCII",
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

bool is_system_label(const std::string& key) { return key == policy_label; }

}  // namespace carve
