#include "cli/top_view.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/top_bars.h"

namespace carve::cli {
namespace {

using Row = TopPart;

// Returns the memory that a new slice could actually use: memory that processes outside of slices use is not
// available.
Bytes free_of(const api::Device& device) {
  return {device.free_bytes - std::min(device.free_bytes, device.used_outside_slices_bytes)};
}

// Returns "23 GiB usable: 4 GiB granted, 1 GiB of it used, 2 GiB used outside of slices, 17 GiB free".
std::string memory_of(const api::Device& device) {
  const auto size = [](uint64_t bytes) { return std::string(text(Bytes{bytes})); };
  return fmt::format("{} usable: {} granted, {} of it used, {}{} free", size(device.usable_bytes),
                     size(device.granted_bytes), size(device.used_in_slices_bytes),
                     device.used_outside_slices_bytes == 0
                         ? ""
                         : size(device.used_outside_slices_bytes) + " used outside of slices, ",
                     size(free_of(device).count));
}

// One column: its heading, its width, the minimum screen width at which it is shown, and its text.
struct Column {
  const char* heading;
  size_t width;
  size_t from;
  bool right;
  std::string (*says)(const Row&);
};

template <auto field, auto written>
std::string measured(const Row& row) {
  return row.part->compute ? written((*row.part->compute).*field) : "-";
}
using C = api::PartCompute;

// Returns "1.8x", or "-" if the slice had no work in the last minute.
std::string slowdown(uint64_t basis_points) {
  if (basis_points == 0) return "-";
  return basis_points < 1'000'000 ? fmt::format("{:.1f}x", static_cast<double>(basis_points) / 10'000)
                                  : fmt::format("{}x", basis_points / 10'000);
}

constexpr Column columns_of_slices[] = {
    {"MEMORY", 20, 0, true,
     [](const Row& r) {
       return fmt::format("{} of {}", text(Bytes{r.part->charged_bytes}).c_str(),
                          text(Bytes{r.part->quota_bytes}).c_str());
     }},
    {"ISOLATION", 14, 0, false, [](const Row& r) { return isolation_column(*r.slice); }},
    {"SHARE", 6, 0, true,
     [](const Row& r) { return r.part->share_bp == 0 ? "-" : std::string(text(Share{r.part->share_bp})); }},
    {"1s", 6, 0, true, measured<&C::achieved_1s_bp, percent>},
    {"1m", 6, 106, true, measured<&C::achieved_60s_bp, percent>},
    {"SLOWDOWN", 8, 0, true, measured<&C::slowdown_60s_bp, slowdown>},
    {"WAITED", 7, 0, true, measured<&C::waiting_ns, span>},
    {"THROTTLED", 9, 104, true, measured<&C::throttled_ns, span>},
    {"BURST", 7, 118, true, measured<&C::burst_ns, span>},
    {"WAIT p50", 8, 128, true, measured<&C::wait_p50_ns, span>},
    {"p99", 7, 136, true, measured<&C::wait_p99_ns, span>},
    {"STATE", 9, 0, false, [](const Row& r) { return std::string(text(r.slice->state)); }},
    {"COMMAND", 0, 0, false, [](const Row& r) { return harmless(r.slice->command); }},
};

// Returns "waited in the last minute: a 8.10s for b, 4.00s for c; b 2.00s for a", or an empty text if no slice
// waited for another one.
std::string waits_line(const std::vector<Row>& rows) {
  constexpr size_t most = 3;  // Neighbours of a slice.
  std::string out;
  for (const Row& row : rows) {
    if (!row.part->compute) continue;
    std::string waits;
    const auto& all = row.part->compute->waits_60s;
    for (size_t i = 0; i < std::min(all.size(), most); ++i)
      waits +=
          fmt::format("{} {} for {}", i == 0 ? "" : ",", span(all[i].waiting_ns), harmless(all[i].slice));
    if (!waits.empty()) out += fmt::format("{} {}{}", out.empty() ? "" : ";", row.slice->name, waits);
  }
  return out.empty() ? "" : "waited in the last minute:" + out;
}

std::string placed(const std::string& text, const Column& column) {
  const std::string fits = column.width == 0 ? text : cut(text, column.width);
  const size_t have = columns(fits);
  const std::string room(column.width > have ? column.width - have : 0, ' ');
  return column.right ? room + fits : fits + room;
}

}  // namespace

std::string render(const TopView& view, const Screen& screen) {
  const size_t width = std::clamp<size_t>(screen.width, 60, 180);
  size_t name_width = 8;
  for (const api::Slice& s : view.slices.slices)
    name_width = std::clamp(s.name.size(), name_width, size_t{width < 120 ? 12u : 24u});
  const size_t bar_width = width - 26;

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
    const std::vector<Row> rows = parts_on(device, view.slices.slices);

    line("");
    const auto& policy = device.policy;
    line(fmt::format(
        "{}  slices {}/{}  {}{}{}{}",
        inked(screen, Ink::bold, fmt::format("{} {}", device.index, device.name)), device.slices,
        device.max_slices, text(policy.effective.value_or(policy.desired)),
        policy.blocked_by.empty() ? "" : fmt::format(" ({} desired)", text(policy.desired)),
        device.commitment == Commitment::normal ? ""
                                                : "  " + inked(screen, Ink::yellow, text(device.commitment)),
        device.health.state == HealthState::ok ? ""
                                               : "  " + inked(screen, Ink::red, message(device.health))));
    line("  " + memory_of(device));
    line(fmt::format("  MEM [{}] {} granted",
                     inked(screen, memory_bar(device, rows, bar_width, screen.colour)),
                     percent(static_cast<uint64_t>(
                         std::lround(fraction(device.granted_bytes, device.usable_bytes) * 10000)))));
    line(fmt::format("  GPU [{}] {}", inked(screen, compute_bar(device, rows, bar_width, screen.colour)),
                     device.arbitration ? percent(device.arbitration->idle_1s_bp) + " idle"
                                        : percent(device.share_granted_bp) + " granted"));
    if (device.compute && !device.compute->enforced())
      line("  " + inked(screen, Ink::yellow, "shares are " + harmless(message(*device.compute))));
    const auto row_of = [&](const std::string& name, const auto& says) {
      std::string row = "  " + name;
      for (const Column& column : columns_of_slices)
        if (width >= column.from) row += " " + placed(says(column), column);
      row.erase(row.find_last_not_of(' ') + 1);
      return row;
    };
    if (rows.empty()) line("  no slices");
    if (!rows.empty())
      line(inked(screen, Ink::dim,
                 row_of(padded("NAME", name_width), [](const Column& c) { return std::string(c.heading); })));
    for (const Row& row : rows) {
      const bool full = fraction(row.part->charged_bytes, row.part->quota_bytes) > 0.95;
      const std::string name = padded(cut(row.slice->name, name_width), name_width);
      line(row_of(inked(screen, full ? Ink::red : row.ink, name),
                  [&](const Column& column) { return column.says(row); }));
    }
    if (const std::string waits = waits_line(rows); !waits.empty()) line("  " + waits);
    for (const std::string& process : device.unmanaged_processes)
      line("  " + inked(screen, Ink::yellow, harmless(process)));
  }
  return out;
}

}  // namespace carve::cli
