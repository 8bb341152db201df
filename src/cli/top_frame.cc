#include "cli/top_frame.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"

namespace carve::cli {
namespace {

std::string size_text(uint64_t bytes) { return text(Bytes{bytes}).c_str(); }

std::string right(const std::string& text, size_t width) {
  const std::string fits = cut(text, width);
  const size_t have = columns(fits);
  return std::string(have < width ? width - have : 0, ' ') + fits;
}

std::string left(const std::string& text, size_t width) { return padded(cut(text, width), width); }

// A column of the list: its heading, its width, the minimum screen width at which it is shown, its order, and its
// text.
struct ListColumn {
  const char* heading;
  size_t width;
  size_t from;
  bool on_the_right;
  TopOrder order;
  std::string (*text)(const TopRow&);
};

template <auto field, auto written>
std::string figure(const TopRow& row) {
  return row.part->compute ? written((*row.part->compute).*field) : "-";
}
using Figures = api::PartCompute;

constexpr ListColumn list_columns[] = {
    {"OWNER", 9, 0, false, TopOrder::owner, [](const TopRow& r) { return harmless(r.owner); }},
    {"DEV", 4, 0, true, TopOrder::device, [](const TopRow& r) { return std::to_string(r.part->index); }},
    {"MEMORY", 20, 0, true, TopOrder::memory,
     [](const TopRow& r) {
       return size_text(r.part->charged_bytes) + " of " + size_text(r.part->quota_bytes);
     }},
    {"SHARE", 6, 0, true, TopOrder::share,
     [](const TopRow& r) {
       return r.part->share_bp == 0 ? "-" : std::string(text(Share{r.part->share_bp}).c_str());
     }},
    {"USE", 6, 0, true, TopOrder::use, figure<&Figures::achieved_1s_bp, percent>},
    {"1m", 6, 100, true, TopOrder::use, figure<&Figures::achieved_60s_bp, percent>},
    {"WAITED", 7, 0, true, TopOrder::wait, figure<&Figures::waiting_ns, span>},
    {"THROTTLED", 9, 120, true, TopOrder::wait, figure<&Figures::throttled_ns, span>},
    {"STATE", 9, 100, false, TopOrder::device,
     [](const TopRow& r) { return std::string(text(r.slice->state)); }},
    {"ACCOUNT", 12, 140, false, TopOrder::owner, [](const TopRow& r) { return harmless(r.slice->account); }},
};

bool shows_command(size_t width) { return width >= 100; }

size_t name_width(size_t width) { return width < 100 ? 14 : 24; }

const char* order_mark(const TopState& state, TopOrder order, bool fine) {
  if (state.order != order) return "";
  if (!fine) return state.reversed ? "^" : "v";
  return state.reversed ? "▲" : "▼";
}

StyledLine heading(const TopState& state, size_t width, bool fine) {
  std::string out = left(std::string("NAME") + order_mark(state, TopOrder::name, fine), name_width(width));
  TopOrder marked = TopOrder::name;  // An order of two columns is marked in the first.
  for (const ListColumn& column : list_columns) {
    if (width < column.from) continue;
    const std::string mark = marked == column.order ? "" : order_mark(state, column.order, fine);
    if (!mark.empty()) marked = column.order;
    const std::string name = column.heading + mark;
    out += " " + (column.on_the_right ? right(name, column.width) : left(name, column.width));
  }
  if (shows_command(width)) out += " COMMAND";
  StyledLine line{.reversed = true};
  line.add(padded(clipped(out, width), width));
  return line;
}

StyledLine row_line(const TopRow& row, size_t width) {
  const bool full = fraction(row.part->charged_bytes, row.part->quota_bytes) > 0.95;
  StyledLine line;
  line.add(left(harmless(row.slice->name), name_width(width)), full ? Ink::red : row.ink);
  std::string rest;
  for (const ListColumn& column : list_columns) {
    if (width < column.from) continue;
    const std::string cell = column.text(row);
    rest += " " + (column.on_the_right ? right(cell, column.width) : left(cell, column.width));
  }
  if (shows_command(width)) rest += " " + harmless(row.slice->command);
  return line.add(rest);
}

StyledLine process_line(const api::Process& process, bool last, size_t width, bool fine) {
  const char* const branch = fine ? (last ? "└─" : "├─") : (last ? "`-" : "|-");
  StyledLine line;
  line.add(fmt::format("  {} ", branch), Ink::dim);
  line.add(fmt::format("{:<8} {:>10}  {}{}", process.pid, size_text(process.used_bytes),
                       process.attached ? "" : "(not attached) ", harmless(process.command)));
  return clipped(line, width);
}

// The lines of the list.
struct List {
  std::vector<StyledLine> lines;
  size_t selected = 0;  // The line of the selected row, or the number of lines.
};

List list_of(const std::vector<TopRow>& rows, const TopState& state, size_t width, bool fine) {
  List out;
  size_t selected = SIZE_MAX;
  for (const TopRow& row : rows) {
    StyledLine line = row_line(row, width);
    if (state.selected && state.selected->slice == row.slice->name &&
        state.selected->device == row.part->index) {
      selected = out.lines.size();
      StyledLine marked{.reversed = true};
      marked.add(padded(clipped(plain(line), width), width));
      line = marked;
    }
    out.lines.push_back(clipped(line, width));
    if (!state.tree) continue;
    const auto& processes = row.slice->processes;
    for (size_t i = 0; i < processes.size(); ++i)
      out.lines.push_back(process_line(processes[i], i + 1 == processes.size(), width, fine));
  }
  out.selected = std::min(selected, out.lines.size());
  return out;
}

StyledLine title(const TopView& view, const TopState& state, size_t rows, size_t width) {
  StyledLine line;
  line.add(fmt::format("carve {}{}  {} device{}, {} slice{}", view.agent.version,
                       view.agent.simulated.empty() ? "" : " (simulated)", view.devices.devices.size(),
                       view.devices.devices.size() == 1 ? "" : "s", view.slices.slices.size(),
                       view.slices.slices.size() == 1 ? "" : "s"),
           Ink::bold);
  if (!state.filter.empty() && state.mode != TopMode::filter)
    line.add(fmt::format("  filter '{}': {}", harmless(state.filter), rows), Ink::cyan);
  const std::string clock = clock_text(view.now_ns);
  const size_t have = columns(line);
  // The last column stays free: some terminals misplace what is drawn after a character there.
  if (have + clock.size() + 2 < width) line.add(std::string(width - 1 - have - clock.size(), ' ')).add(clock);
  return clipped(line, width);
}

// "0 NVIDIA A10   MEM[###==.....]  63% GPU[####.....]  99% .:-=+"
StyledLine device_line(const api::Device& device, const TopView& view, const TopHistory& history,
                       size_t width, bool fine) {
  const auto parts = parts_on(device, view.slices.slices);
  const size_t label = width < 120 ? 15 : 30, strip_width = width < 120 ? 10 : 40;
  // Two bars, each with 4 columns before it and 6 after it, and the spaces between the parts.
  const size_t taken = label + strip_width + 2 * (4 + 6) + 4;
  const size_t bar = width > taken + 2 * 6 ? (width - taken) / 2 : 6;
  StyledLine line;
  const bool healthy = device.health.state == HealthState::ok;
  line.add(left(fmt::format("{} {}", device.index, device.name), label), healthy ? Ink::bold : Ink::red);
  line.add(" MEM[").add(memory_bar(device, parts, bar, fine));
  line.add(fmt::format("]{:>4.0f}%", fraction(device.granted_bytes, device.usable_bytes) * 100));
  line.add(" GPU[").add(compute_bar(device, parts, bar, fine));
  line.add(fmt::format("]{:>4.0f}% ", busy_bp(device) / 100.0));
  const auto busy = history.busy_bp.find(device.uuid);
  if (busy != history.busy_bp.end()) line.add(strip(busy->second, strip_width, fine), Ink::green);
  return clipped(line, width);
}

// Returns the faults of a device, a line for each.
std::vector<StyledLine> device_notes(const api::Device& device, size_t width) {
  std::vector<StyledLine> out;
  const auto note = [&](const std::string& text, Ink ink) {
    StyledLine line;
    out.push_back(clipped(line.add("  " + harmless(text), ink), width));
  };
  if (device.health.state != HealthState::ok) note(message(device.health), Ink::red);
  if (device.compute && !device.compute->enforced())
    note("shares are " + message(*device.compute), Ink::yellow);
  if (!device.unmanaged_processes.empty())
    note(device.unmanaged_processes.size() == 1
             ? device.unmanaged_processes.front()
             : fmt::format("{} processes outside of slices: {}", device.unmanaged_processes.size(),
                           device.unmanaged_processes.front()),
         Ink::yellow);
  return out;
}

// The devices, at most a third of the screen. The device of the selected row is among them.
std::vector<StyledLine> devices_area(const TopView& view, const TopState& state, const TopHistory& history,
                                     const TopSize& size, bool fine) {
  const auto& devices = view.devices.devices;
  const size_t most = std::max<size_t>(2, size.height / 3);
  size_t first = 0;
  if (state.selected)
    for (size_t i = 0; i < devices.size(); ++i)
      if (devices[i].index == state.selected->device && i + 1 >= most) first = i + 2 - most;
  std::vector<StyledLine> out;
  size_t i = first;
  for (; i < devices.size() && out.size() < most; ++i) {
    if (out.size() + 1 == most && i + 1 < devices.size()) break;
    out.push_back(device_line(devices[i], view, history, size.width, fine));
    for (StyledLine& note : device_notes(devices[i], size.width))
      if (out.size() + 1 < most) out.push_back(std::move(note));
  }
  if (const size_t hidden = devices.size() - (i - first); hidden != 0) {
    StyledLine line;
    out.push_back(clipped(
        line.add(fmt::format("  {} more device{}", hidden, hidden == 1 ? "" : "s"), Ink::dim), size.width));
  }
  return out;
}

// Describes the selected slice: its age, its last refusal, its waits and its command.
StyledLine detail(const std::vector<TopRow>& rows, const TopState& state, const TopView& view, size_t width) {
  StyledLine line;
  for (const TopRow& row : rows) {
    if (!state.selected || row.slice->name != state.selected->slice ||
        row.part->index != state.selected->device)
      continue;
    line.add(harmless(row.slice->name) + ": ", row.ink);
    line.add(fmt::format("{} for {}", text(row.slice->state),
                         age(view.now_ns - std::min(view.now_ns, row.slice->created_ns))));
    if (row.slice->refused_ns != 0)
      line.add(fmt::format(", out of memory {} ago",
                           age(view.now_ns - std::min(view.now_ns, row.slice->refused_ns))),
               Ink::red);
    if (row.part->compute)
      for (size_t i = 0; i < std::min<size_t>(row.part->compute->waits_60s.size(), 3); ++i) {
        const api::WaitFor& wait = row.part->compute->waits_60s[i];
        line.add(fmt::format(", {}{} for {}", i == 0 ? "waited " : "", span(wait.waiting_ns),
                             harmless(wait.slice)));
      }
    line.add("  " + harmless(row.slice->command), Ink::dim);
    break;
  }
  return clipped(line, width);
}

StyledLine last_line(const TopState& state, const std::string& lost, size_t width) {
  StyledLine line;
  const std::string target = harmless(state.target);
  switch (state.mode) {
    case TopMode::filter: line.add("Filter: " + harmless(state.filter) + "_", Ink::bold); break;
    case TopMode::change:
      if (!state.notice.text.empty()) line.add(harmless(state.notice.text) + "  ", Ink::red);
      line.add(fmt::format("New memory and share of {} (6GiB 30%): {}_", target, harmless(state.input)),
               Ink::bold);
      break;
    case TopMode::confirm_stop:
      line.add(fmt::format("Stop slice {} and all of its processes? y/N", target), Ink::bold);
      break;
    case TopMode::confirm_change:
      line.add(fmt::format("Change slice {} to {}? y/N", target, change_text(state.change)), Ink::bold);
      break;
    case TopMode::help: line.add("Press any key to return", Ink::bold); break;
    case TopMode::browse:
      if (!lost.empty())
        line.add(harmless(lost), Ink::red);
      else if (!state.notice.text.empty())
        line.add(harmless(state.notice.text), state.notice.is_error ? Ink::red : Ink::green);
      else
        line.add(width < 100
                     ? "arrows select  o sort  / filter  t processes  s stop  e change  ? help  q quit"
                     : "arrows select   o sort   r reverse   / filter   t processes   s stop   "
                       "e change   ? help   q quit",
                 Ink::dim);
  }
  return clipped(line, width);
}

std::vector<StyledLine> help(size_t width) {
  static constexpr const char* texts[] = {
      "up, down, k, j         select a slice",
      "page up, page down     a page up or down; home, end: the first or last slice",
      "o                      sort by the next column; r reverses the order",
      "D M S U W O N          sort by device, memory, share, use, wait, owner, name",
      "/                      show only slices whose name, owner, account or command contains a text",
      "t, enter, right, left  show or hide the processes below their slices",
      "s                      stop the selected slice, after a question",
      "e                      change its memory and share, after a question",
      "escape                 clear the filter and the selection",
      "q                      quit",
      "",
      "MEM  the quotas of the slices, the used part filled; '!' is memory outside of slices",
      "GPU  what each slice used of the last second; the strip shows the device's past",
      "USE  the slice's part of the device in the last second; WAITED: for another slice",
  };
  std::vector<StyledLine> out;
  for (const char* text : texts) {
    StyledLine line;
    out.push_back(clipped(line.add("  ").add(text), width));
  }
  return out;
}

}  // namespace

TopFrame draw(const TopView& view, const TopState& state, const TopHistory& history, const TopSize& size,
              bool fine, const std::string& lost) {
  const auto rows = top_rows(view, state);
  TopFrame out;
  out.lines.push_back(title(view, state, rows.size(), size.width));
  for (StyledLine& line : devices_area(view, state, history, size, fine))
    out.lines.push_back(std::move(line));
  out.lines.push_back(heading(state, size.width, fine));
  // The detail and the last line follow the list.
  out.page = size.height > out.lines.size() + 3 ? size.height - out.lines.size() - 2 : 1;
  List list;
  if (state.mode == TopMode::help)
    list.lines = help(size.width);
  else
    list = list_of(rows, state, size.width, fine);
  if (list.lines.empty()) {
    StyledLine line;
    list.lines.push_back(clipped(
        line.add(view.slices.slices.empty() ? "  No slices. Create one: carve run --memory 2GiB -- PROGRAM"
                                            : "  No slice matches the filter; escape clears it",
                 Ink::dim),
        size.width));
  }
  const size_t last_first = list.lines.size() - std::min(list.lines.size(), out.page);
  out.first = std::min(state.first, last_first);
  if (list.selected < list.lines.size() && state.mode != TopMode::help) {
    if (list.selected < out.first) out.first = list.selected;
    if (list.selected >= out.first + out.page) out.first = list.selected + 1 - out.page;
  }
  for (size_t i = 0; i < out.page; ++i)
    out.lines.push_back(out.first + i < list.lines.size() ? list.lines[out.first + i] : StyledLine{});
  out.lines.push_back(detail(rows, state, view, size.width));
  out.lines.push_back(last_line(state, lost, size.width));
  if (out.lines.size() > size.height) out.lines.resize(size.height);
  return out;
}

}  // namespace carve::cli
