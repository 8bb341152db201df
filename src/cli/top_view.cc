#include "cli/top_view.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/share.h"

namespace carve::cli {
namespace {

struct Row {
  const api::Slice* slice;
  const api::SlicePart* part;
  Ink ink;
};

double fraction(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The device as one bar: each slice takes the cells of its quota, its used part filled; the rest is free.
std::string device_bar(const api::Device& device, const std::vector<Row>& rows, size_t width,
                       const Screen& screen) {
  const bool fine = screen.colour;
  std::string out;
  size_t drawn = 0;
  uint64_t upto = 0;
  for (const Row& row : rows) {
    upto += row.part->quota_bytes;
    const auto end = std::min(width, static_cast<size_t>(std::lround(fraction(upto, device.usable_bytes) *
                                                                     static_cast<double>(width))));
    const size_t cells = std::max<size_t>(end > drawn ? end - drawn : 0, drawn < width ? 1 : 0);
    const auto full = static_cast<size_t>(
        std::lround(fraction(row.part->charged_bytes, row.part->quota_bytes) * static_cast<double>(cells)));
    std::string piece;
    for (size_t i = 0; i < cells; ++i) piece += i < full ? (fine ? "█" : "#") : (fine ? "░" : "=");
    out += inked(screen, row.ink, piece);
    drawn += cells;
  }
  for (; drawn < width; ++drawn) out += fine ? "·" : ".";
  return out;
}

}  // namespace

std::string render(const TopView& view, const Screen& screen) {
  const size_t width = std::clamp<size_t>(screen.width, 60, 160);
  size_t name_width = 8;
  for (const api::Slice& s : view.slices.slices)
    name_width = std::clamp(s.name.size(), name_width, size_t{24});
  const size_t bar_width = std::clamp<size_t>(width > name_width + 64 ? width - name_width - 64 : 8, 8, 30);

  std::string out;
  const auto line = [&](std::string_view text) { out += clipped(text, width) + "\n"; };
  const auto plural = [](size_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };

  line(inked(
      screen, Ink::bold,
      fmt::format("carve {}  {}, {}{}  {}", view.agent.version, plural(view.devices.devices.size(), "device"),
                  plural(view.slices.slices.size(), "slice"),
                  view.agent.simulated.empty() ? "" : "  (simulated)", clock_text(view.now_ns))));
  for (const api::Device& device : view.devices.devices) {
    std::vector<Row> rows;
    for (size_t i = 0; i < view.slices.slices.size(); ++i)
      for (const api::SlicePart& part : view.slices.slices[i].parts)
        if (part.uuid == device.uuid) rows.push_back({&view.slices.slices[i], &part, ink_of(i)});

    line("");
    line(fmt::format("{}  tenants {}/{}  {} usable, {} granted, {} free{}",
                     inked(screen, Ink::bold, fmt::format("{} {}", device.index, device.name)),
                     device.tenants, device.tenants_max, text(Bytes{device.usable_bytes}).c_str(),
                     text(Bytes{device.granted_bytes}).c_str(), text(Bytes{device.free_bytes}).c_str(),
                     device.health == "ok" ? "" : "  " + inked(screen, Ink::red, device.health)));
    line(fmt::format("  [{}]", device_bar(device, rows, width - 4, screen)));
    for (const Row& row : rows) {
      const api::SlicePart& p = *row.part;
      const double full = fraction(p.charged_bytes, p.quota_bytes);
      line(fmt::format("  {} [{}] {:>10} of {:<10} {:>4}  {:<9} {:<8} {}",
                       inked(screen, row.ink, padded(cut(row.slice->name, name_width), name_width)),
                       inked(screen, full > 0.95 ? Ink::red : row.ink, bar(full, bar_width, screen.colour)),
                       text(Bytes{p.charged_bytes}).c_str(), text(Bytes{p.quota_bytes}).c_str(),
                       p.share_bp == 0 ? "-" : text(Share{p.share_bp}).c_str(), row.slice->state,
                       row.slice->isolation == "none" ? "none" : row.slice->enforcement,
                       harmless(row.slice->command)));
    }
    if (rows.empty()) line("  no slices");
    for (const std::string& stranger : device.strangers)
      line("  " + inked(screen, Ink::yellow, harmless(stranger)));
  }
  return out;
}

}  // namespace carve::cli
