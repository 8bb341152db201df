#include "node/slice/visible.h"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace carve::node {
namespace {

std::string_view trimmed(std::string_view word) {
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  return word;
}

// Returns the one device that a word names; null if it names none or several.
const std::string* named(std::span<const std::string> machine, std::string_view word) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (!word.empty() && end == word.data() + word.size())
    return error == std::errc{} && index < machine.size() ? &machine[index] : nullptr;
  constexpr std::string_view start = "GPU-";
  if (word.size() <= start.size() || strncasecmp(word.data(), start.data(), start.size()) != 0)
    return nullptr;
  const std::string* found = nullptr;
  for (const std::string& uuid : machine) {
    if (uuid.size() < word.size() || strncasecmp(uuid.data(), word.data(), word.size()) != 0) continue;
    if (found != nullptr) return nullptr;
    found = &uuid;
  }
  return found;
}

}  // namespace

std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list) {
  if (!list) return {granted.begin(), granted.end()};
  std::vector<std::string> seen;
  for (size_t at = 0; at <= list->size();) {
    const size_t end = std::min(list->find(',', at), list->size());
    const std::string* device = named(machine, trimmed(list->substr(at, end - at)));
    if (device == nullptr) break;
    if (std::ranges::count(seen, *device) != 0) return {};
    seen.push_back(*device);
    at = end + 1;
  }
  std::erase_if(seen, [&](const std::string& uuid) { return std::ranges::count(granted, uuid) == 0; });
  return seen;
}

}  // namespace carve::node
