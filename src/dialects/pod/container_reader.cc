#include "dialects/pod/container_reader.h"

#include <algorithm>

#include "kubernetes/format/quantity.h"

namespace carve::dialects {

bool ContainerReader::has_limit(const char* key) const {
  return container_.limits && container_.limits.value->contains(key);
}

JsonMember ContainerReader::limit(const char* key) {
  const JsonMember limit = json_.named(container_.limits, key);
  const JsonMember request = json_.named(container_.requests, key);
  if (request && (!limit || shown_json(*request.value) != shown_json(*limit.value)))
    refuse(request, "{}: the request {} must equal the limit; set only the limit", key,
           shown_json(*request.value));
  return limit;
}

std::vector<std::pair<std::string, JsonMember>> ContainerReader::members_with(const JsonMember& object,
                                                                              std::string_view prefix) {
  std::vector<std::pair<std::string, JsonMember>> out;
  if (!object) return out;
  for (const auto& [key, value] : object.value->items())
    if (key.starts_with(prefix)) out.emplace_back(key, json_.named(object, key.c_str()));
  return out;
}

std::vector<std::pair<std::string, JsonMember>> ContainerReader::annotations_with(std::string_view prefix) {
  return members_with(pod_.annotations, prefix);
}

std::vector<std::pair<std::string, JsonMember>> ContainerReader::limits_with(std::string_view prefix) {
  return members_with(container_.limits, prefix);
}

std::optional<uint64_t> ContainerReader::count(const JsonMember& member, std::string_view name,
                                               const CountRange& range) {
  if (!member) return std::nullopt;
  const api::Json& value = *member.value;
  const std::string given = value.is_string() ? value.get<std::string>() : value.dump();
  const auto number = kubernetes::parse_quantity(given);
  if (const std::string_view suffix = kubernetes::byte_suffix(given); number && !suffix.empty()) {
    const bool has_way =
        range.unit_bytes != 0 && *number >= range.unit_bytes && *number % range.unit_bytes == 0;
    refuse(member, "{}: {} has the suffix {}, but must be a number{}; write {}", name, given.substr(0, 40),
           suffix, range.unit.empty() ? "" : " of " + range.unit,
           has_way ? fmt::format("{}", *number / range.unit_bytes)
                   : fmt::format("the number without {}", suffix));
    return std::nullopt;
  }
  if (number && *number >= range.low && *number <= range.high && *number % range.step == 0) return number;
  const std::string steps = range.step == 1 ? "" : fmt::format(" in steps of {}", range.step);
  refuse(member, "{}: {}; must be {}", name, given.substr(0, 40),
         range.text.empty() ? fmt::format("{} to {}{}", range.low, range.high, steps) : range.text);
  return std::nullopt;
}

std::optional<uint64_t> ContainerReader::number(std::string_view text, uint64_t low, uint64_t high) {
  if (text.empty() || text.size() > 9 ||
      !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  const uint64_t value = std::stoull(std::string(text));
  return value >= low && value <= high ? std::optional(value) : std::nullopt;
}

}  // namespace carve::dialects
