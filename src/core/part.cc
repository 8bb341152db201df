#include "core/part.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/share.h"

namespace carve {
namespace {

constexpr std::string_view units_suffix = " units";
constexpr size_t max_shown = 40;  // Characters of an invalid text that are shown.

Result<Part, std::string> parse_units(std::string_view count) {
  const auto number = leading_decimal(count);
  if (!number || number->length != count.size() || number->decimals != 0 || number->digits < 1 ||
      number->digits > max_memory_units)
    return tl::unexpected(fmt::format("must be 1 to {} units; try 16 units", max_memory_units));
  return Part{.memory_units = static_cast<uint32_t>(number->digits)};
}

// Returns the text with control characters replaced and its length limited, because a caller may choose both.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, max_shown));
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > max_shown ? out + "..." : out;
}

Result<Part, std::string> parse_part(std::string_view text, MemoryParser parse_memory_of) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view memory = text.substr(0, colon);
  if (memory.empty())
    return tl::unexpected(std::string("no memory given; write MEMORY:SHARE, as in 8GiB:30%"));
  auto out = parse_memory_of(memory);
  if (!out) return tl::unexpected(fmt::format("memory '{}' {}", shown(memory), out.error()));
  if (colon == text.size()) return out;
  const std::string_view share = text.substr(colon + 1);
  const auto parsed = parse_share(share);
  if (!parsed) return tl::unexpected(fmt::format("share '{}' {}", shown(share), parsed.error().message));
  out->share_bp = parsed->basis_points;
  return out;
}

// Returns an amount of bytes in the largest unit that is exact.
std::string exact(uint64_t bytes) {
  if (bytes != 0 && bytes % (uint64_t{1} << 30) == 0) return fmt::format("{}GiB", bytes >> 30);
  if (bytes != 0 && bytes % (uint64_t{1} << 20) == 0) return fmt::format("{}MiB", bytes >> 20);
  return fmt::format("{}B", bytes);
}

}  // namespace

Result<Part, std::string> parse_memory(std::string_view text) {
  if (text.ends_with('%')) {
    const auto part = parse_share(text);
    if (!part) return tl::unexpected(std::string(part.error().message));
    return Part{.memory_bp = part->basis_points};
  }
  if (text.ends_with(units_suffix)) return parse_units(text.substr(0, text.size() - units_suffix.size()));
  const auto bytes = parse_bytes(text);
  if (!bytes) return tl::unexpected(std::string(bytes.error().message));
  return Part{.memory_bytes = bytes->count};
}

Result<std::vector<Part>, std::string> parse_parts(std::string_view text, MemoryParser memory) {
  const auto count = static_cast<size_t>(std::ranges::count(text, ',')) + 1;
  if (count > max_slice_devices)
    return tl::unexpected(
        fmt::format("{} parts are given; a slice can have 1 to {}", count, max_slice_devices));
  std::vector<Part> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    auto part = parse_part(text.substr(at, end - at), memory);
    if (!part)
      return tl::unexpected(
          fmt::format("part {} '{}': {}", out.size() + 1, shown(text.substr(at, end - at)), part.error()));
    out.push_back(*part);
    at = end + 1;
  }
  return out;
}

std::string text(const std::vector<Part>& parts) {
  std::string out;
  for (const Part& part : parts) {
    if (!out.empty()) out += ",";
    if (part.memory_bytes) out += exact(*part.memory_bytes);
    if (part.memory_bp) out += text(Share{*part.memory_bp});
    if (part.memory_units) out += fmt::format("{}{}", *part.memory_units, units_suffix);
    if (part.share_bp) out += fmt::format(":{}", std::string_view(text(Share{*part.share_bp})));
  }
  return out;
}

}  // namespace carve
