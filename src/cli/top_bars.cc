#include "cli/top_bars.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace carve::cli {
namespace {

// A part of a bar. Parts are drawn one after the other, each with the `full` fraction of it filled. The rest
// of the bar is drawn as free.
struct Piece {
  double width, full;  // Fractions of the whole bar and of this part.
  Ink ink;
  char plain = '#';  // Fill character without block characters.
};

StyledLine cut_bar(const std::vector<Piece>& pieces, size_t width, bool fine) {
  StyledLine out;
  size_t drawn = 0;
  double upto = 0;
  for (const Piece& piece : pieces) {
    if (piece.width <= 0) continue;
    upto += piece.width;
    const auto end = std::min(width, static_cast<size_t>(std::lround(upto * static_cast<double>(width))));
    const size_t cells = std::max<size_t>(end > drawn ? end - drawn : 0, drawn < width ? 1 : 0);
    const auto full = static_cast<size_t>(std::lround(piece.full * static_cast<double>(cells)));
    std::string text;
    for (size_t i = 0; i < cells; ++i)
      text +=
          i < full ? (fine ? std::string("█") : std::string(1, piece.plain)) : std::string(fine ? "░" : "=");
    out.add(text, piece.ink);
    drawn += cells;
  }
  std::string rest;
  for (; drawn < width; ++drawn) rest += fine ? "·" : ".";
  out.add(rest);
  return out;
}

}  // namespace

std::vector<TopPart> parts_on(const api::Device& device, const std::vector<api::Slice>& slices) {
  std::vector<TopPart> out;
  for (size_t i = 0; i < slices.size(); ++i)
    for (const api::SlicePart& part : slices[i].parts)
      if (part.uuid == device.uuid) out.push_back({&slices[i], &part, ink_of(i)});
  return out;
}

double fraction(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

StyledLine memory_bar(const api::Device& device, const std::vector<TopPart>& parts, size_t width, bool fine) {
  std::vector<Piece> out;
  uint64_t seen_quota = 0, seen_used = 0;
  for (const TopPart& row : parts) {
    out.push_back({fraction(row.part->quota_bytes, device.usable_bytes),
                   std::min(fraction(row.part->charged_bytes, row.part->quota_bytes), 1.0), row.ink});
    seen_quota += row.part->quota_bytes;
    seen_used += row.part->used_bytes;
  }
  if (device.granted_bytes > seen_quota) {
    const uint64_t quota = device.granted_bytes - seen_quota;
    const uint64_t used = device.used_in_slices_bytes - std::min(device.used_in_slices_bytes, seen_used);
    out.push_back({fraction(quota, device.usable_bytes), std::min(fraction(used, quota), 1.0), Ink::dim});
  }
  const uint64_t left = device.usable_bytes - std::min(device.usable_bytes, device.granted_bytes);
  const uint64_t outside = std::min(device.used_outside_slices_bytes, left);
  if (outside != 0) out.push_back({fraction(outside, device.usable_bytes), 1.0, Ink::yellow, '!'});
  return cut_bar(out, width, fine);
}

StyledLine compute_bar(const api::Device& device, const std::vector<TopPart>& parts, size_t width,
                       bool fine) {
  constexpr std::string_view fills = "#%@*+";  // Neighbours get different characters, like their colours.
  std::vector<Piece> out;
  for (const TopPart& row : parts) {
    const bool measured = device.arbitration && row.part->compute;
    out.push_back({fraction(measured ? row.part->compute->achieved_1s_bp : row.part->share_bp, 10000),
                   measured ? 1.0 : 0.0, row.ink, fills[out.size() % fills.size()]});
  }
  return cut_bar(out, width, fine);
}

uint32_t busy_bp(const api::Device& device) {
  return device.arbitration ? 10000 - std::min(10000u, device.arbitration->idle_1s_bp)
                            : device.utilization_percent * 100;
}

std::string strip(const std::deque<uint32_t>& values, size_t width, bool fine) {
  static constexpr std::array<const char*, 9> blocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 9> letters = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
  const size_t shown = std::min(width, values.size());
  std::string out(width - shown, ' ');
  for (size_t i = values.size() - shown; i < values.size(); ++i) {
    // A value above 0 is drawn, however small.
    const size_t level = (std::min(values[i], 10000u) * 8 + 9999) / 10000;
    out += (fine ? blocks : letters)[level];
  }
  return out;
}

}  // namespace carve::cli
