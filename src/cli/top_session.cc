#include "cli/top_session.h"

#include <algorithm>
#include <sstream>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/slice_options.h"

namespace carve::cli {
namespace {

using Pressed = TopKey::Kind;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool contains(std::string_view text, std::string_view wanted) {
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

bool matches(const TopRow& row, const std::string& filter) {
  return filter.empty() || contains(row.slice->name, filter) || contains(row.owner, filter) ||
         contains(row.slice->account, filter) || contains(row.slice->command, filter);
}

// Returns the value by which the rows are sorted, the largest first.
uint64_t rank(const TopRow& row, TopOrder order) {
  const auto& compute = row.part->compute;
  switch (order) {
    case TopOrder::memory: return row.part->charged_bytes;
    case TopOrder::share: return row.part->share_bp;
    case TopOrder::use: return compute ? compute->achieved_1s_bp : row.part->utilization_percent * 100;
    case TopOrder::wait: return compute ? compute->waiting_ns : 0;
    case TopOrder::device:
    case TopOrder::owner:
    case TopOrder::name: break;
  }
  return 0;
}

bool comes_before(const TopRow& a, const TopRow& b, TopOrder order) {
  const uint64_t first = rank(a, order), second = rank(b, order);
  if (first != second) return first > second;
  if (order == TopOrder::owner && a.owner != b.owner) return a.owner < b.owner;
  if (order == TopOrder::device && a.part->index != b.part->index) return a.part->index < b.part->index;
  if (a.slice->name != b.slice->name) return a.slice->name < b.slice->name;
  return a.part->index < b.part->index;
}

TopRowName name_of(const TopRow& row) { return {row.slice->name, row.part->index}; }

size_t index_of(const std::vector<TopRow>& rows, const std::optional<TopRowName>& name) {
  if (name)
    for (size_t i = 0; i < rows.size(); ++i)
      if (name_of(rows[i]) == *name) return i;
  return rows.size();
}

// Moves the selection. The first movement selects the first row.
void move(TopState& state, const std::vector<TopRow>& rows, Pressed kind, size_t page) {
  if (rows.empty()) return;
  const size_t at = index_of(rows, state.selected), last = rows.size() - 1, step = std::max<size_t>(page, 1);
  size_t next = 0;
  if (kind == Pressed::end) next = last;
  if (at < rows.size()) {
    if (kind == Pressed::up) next = at - std::min<size_t>(at, 1);
    if (kind == Pressed::down) next = std::min(at + 1, last);
    if (kind == Pressed::page_up) next = at - std::min(at, step);
    if (kind == Pressed::page_down) next = std::min(at + step, last);
  }
  state.selected = name_of(rows[next]);
}

void sort_by(TopState& state, TopOrder order) {
  state.reversed = state.order == order && !state.reversed;
  state.order = order;
}

// Begins a question about the selected slice.
void ask(TopState& state, TopMode mode, const std::vector<TopRow>& rows) {
  const size_t at = index_of(rows, state.selected);
  if (at == rows.size()) {
    state.notice = {"select a slice first, with the arrow keys", true};
    return;
  }
  const api::Slice& slice = *rows[at].slice;
  if (const std::string problem = workload_problem(slice); mode == TopMode::change && !problem.empty()) {
    state.notice = {problem, true};
    return;
  }
  state.mode = mode;
  state.target = slice.name;
  state.input.clear();
}

TopAction browse(TopState& state, const TopKey& key, const std::vector<TopRow>& rows, size_t page) {
  if (key.kind == Pressed::escape) {
    state.filter.clear();
    state.selected.reset();
    return {};
  }
  if (key.kind == Pressed::enter || key.kind == Pressed::right || key.kind == Pressed::left) {
    state.tree = key.kind == Pressed::right || (key.kind == Pressed::enter && !state.tree);
    return {TopAction::Kind::refresh};
  }
  if (key.kind != Pressed::character) {
    move(state, rows, key.kind, page);
    return {};
  }
  switch (key.character) {
    case 'q':
    case 'Q': return {TopAction::Kind::quit};
    case 'j': move(state, rows, Pressed::down, page); break;
    case 'k': move(state, rows, Pressed::up, page); break;
    case 'g': move(state, rows, Pressed::home, page); break;
    case 'G': move(state, rows, Pressed::end, page); break;
    case '/':
      state.mode = TopMode::filter;
      state.former_filter = state.filter;
      break;
    case 'o':
      state.order = static_cast<TopOrder>((static_cast<unsigned>(state.order) + 1) % 7);
      state.reversed = false;
      break;
    case 'r': state.reversed = !state.reversed; break;
    case 'D': sort_by(state, TopOrder::device); break;
    case 'M': sort_by(state, TopOrder::memory); break;
    case 'S': sort_by(state, TopOrder::share); break;
    case 'U': sort_by(state, TopOrder::use); break;
    case 'W': sort_by(state, TopOrder::wait); break;
    case 'O': sort_by(state, TopOrder::owner); break;
    case 'N': sort_by(state, TopOrder::name); break;
    case 't': state.tree = !state.tree; return {TopAction::Kind::refresh};
    case 's': ask(state, TopMode::confirm_stop, rows); break;
    case 'e': ask(state, TopMode::change, rows); break;
    case '?':
    case 'h': state.mode = TopMode::help; break;
    default: break;
  }
  return {};
}

// Edits a line. Returns true if the key was for the line.
bool edit(std::string& text, const TopKey& key) {
  constexpr size_t longest = 200;  // In bytes.
  if (key.kind == Pressed::backspace) {
    while (!text.empty() && (text.back() & 0xc0) == 0x80) text.pop_back();
    if (!text.empty()) text.pop_back();
    return true;
  }
  if (key.kind != Pressed::character || static_cast<unsigned char>(key.character) < ' ') return false;
  if (text.size() < longest) text += key.character;
  return true;
}

void edit_filter(TopState& state, const TopKey& key) {
  if (edit(state.filter, key)) return;
  if (key.kind == Pressed::escape) state.filter = state.former_filter;
  if (key.kind == Pressed::escape || key.kind == Pressed::enter) state.mode = TopMode::browse;
}

void edit_change(TopState& state, const TopKey& key) {
  if (edit(state.input, key)) return;
  if (key.kind == Pressed::escape) state.mode = TopMode::browse;
  if (key.kind != Pressed::enter) return;
  const auto change = parse_change(state.input);
  if (!change) {
    state.notice = {change.error(), true};
    return;
  }
  state.change = *change;
  state.mode = TopMode::confirm_change;
}

TopAction answer(TopState& state, const TopKey& key) {
  const bool yes = key.kind == Pressed::character && (key.character == 'y' || key.character == 'Y');
  const bool stops = state.mode == TopMode::confirm_stop;
  state.mode = TopMode::browse;
  if (!yes) {
    state.notice = {fmt::format("slice {} was not {}", harmless(state.target), stops ? "stopped" : "changed"),
                    false};
    return {};
  }
  return {stops ? TopAction::Kind::stop : TopAction::Kind::change, state.target, state.change};
}

}  // namespace

void TopHistory::add(const TopView& view) {
  std::map<std::string, std::deque<uint32_t>> next;
  for (const api::Device& device : view.devices.devices) {
    auto& values = next[device.uuid];
    if (const auto known = busy_bp.find(device.uuid); known != busy_bp.end())
      values = std::move(known->second);
    values.push_back(cli::busy_bp(device));
    if (values.size() > kept) values.pop_front();
  }
  busy_bp = std::move(next);
}

std::vector<TopRow> top_rows(const TopView& view, const TopState& state) {
  std::map<std::string_view, const api::Device*> devices;
  for (const api::Device& device : view.devices.devices) devices[device.uuid] = &device;
  std::vector<TopRow> out;
  const auto& slices = view.slices.slices;
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto user = view.user_names.find(slices[i].owner_uid);
    const std::string owner =
        user == view.user_names.end() ? std::to_string(slices[i].owner_uid) : user->second;
    for (const api::SlicePart& part : slices[i].parts) {
      const auto device = devices.find(part.uuid);
      const TopRow row{&slices[i], &part, device == devices.end() ? nullptr : device->second, owner,
                       ink_of(i)};
      if (matches(row, state.filter)) out.push_back(row);
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](const TopRow& a, const TopRow& b) {
    return state.reversed ? comes_before(b, a, state.order) : comes_before(a, b, state.order);
  });
  return out;
}

TopAction press(TopState& state, const TopKey& key, const TopView& view, size_t page) {
  state.notice = {};
  switch (state.mode) {
    case TopMode::filter: edit_filter(state, key); return {};
    case TopMode::change: edit_change(state, key); return {};
    case TopMode::confirm_stop:
    case TopMode::confirm_change: return answer(state, key);
    case TopMode::help: state.mode = TopMode::browse; return {};
    case TopMode::browse: break;
  }
  return browse(state, key, top_rows(view, state), page);
}

void keep_selection(TopState& state, const std::vector<TopRow>& rows) {
  if (!state.selected || index_of(rows, state.selected) < rows.size()) return;
  const auto next = std::find_if(rows.begin(), rows.end(), [&](const TopRow& row) {
    return row.slice->name >= state.selected->slice && row.part->index == state.selected->device;
  });
  state.selected.reset();
  if (next != rows.end()) state.selected = name_of(*next);
}

Result<api::SliceChange, std::string> parse_change(const std::string& text) {
  ChangeOptions options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& field = word.ends_with('%') ? options.compute : options.memory;
    if (!field.empty())
      return tl::unexpected(fmt::format("'{}' and '{}': give one memory and one share", field, word));
    field = word;
  }
  if (options.memory.empty() && options.compute.empty())
    return tl::unexpected(std::string("type the new memory, the new share or both: 6GiB 30%"));
  return to_change(options);
}

std::string change_text(const api::SliceChange& change) {
  std::string out;
  if (change.memory_bytes) out = fmt::format("memory {}", text(Bytes{*change.memory_bytes}).c_str());
  if (change.share_bp)
    out += fmt::format("{}share {}", out.empty() ? "" : " and ", text(Share{*change.share_bp}).c_str());
  return out;
}

}  // namespace carve::cli
