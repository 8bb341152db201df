// The state of an interactive `carve top`: order, filter, selected slice, question on the last line. Pure: keys and views go in; the rows to draw and the actions to carry out come out. The drawing
// is in top_frame.h, the terminal in curses_screen.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/top_bars.h"
#include "cli/top_view.h"

namespace carve::cli {

enum class TopOrder : uint8_t { device, memory, share, use, wait, owner, name };

// The meaning of the keys.
enum class TopMode : uint8_t {
  browse,
  filter,          // They edit the filter.
  change,          // They edit the new terms of the selected slice.
  confirm_stop,    // y stops the slice.
  confirm_change,  // y changes it.
  help,
};

struct TopKey {
  enum class Kind : uint8_t {
    character,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    backspace,
    left,
    right,
  };
  Kind kind = Kind::character;
  char character = 0;  // A byte of UTF-8.
};

// A slice's part of a device; the same slice has a row for each of its devices.
struct TopRow {
  const api::Slice* slice;
  const api::SlicePart* part;
  const api::Device* device;
  std::string owner;
  Ink ink;
};

// Identifies a row over several views.
struct TopRowName {
  std::string slice;
  uint32_t device = 0;
  friend bool operator==(const TopRowName&, const TopRowName&) = default;
};

struct TopNotice {
  std::string text;
  bool is_error = false;
};

struct TopState {
  TopOrder order = TopOrder::device;
  bool reversed = false;
  bool tree = false;          // Processes are shown below their slice.
  std::string filter;         // Shown are rows that contain it in name, owner, account or command.
  std::string former_filter;  // Restored by Escape.
  TopMode mode = TopMode::browse;
  std::string input;        // The text of TopMode::change.
  std::string target;       // The slice that a question is about.
  api::SliceChange change;  // Of TopMode::confirm_change.
  std::optional<TopRowName> selected;
  size_t first = 0;  // The first line of the list that is shown.
  TopNotice notice;  // The result of the last action.
};

// The last samples of the devices' busy time, at most `kept` of each.
struct TopHistory {
  static constexpr size_t kept = 240;
  std::map<std::string, std::deque<uint32_t>> busy_bp;  // By the device's UUID.

  void add(const TopView& view);
};

// Returns the rows that match the filter, in the state's order.
std::vector<TopRow> top_rows(const TopView& view, const TopState& state);

struct TopAction {
  enum class Kind : uint8_t { none, quit, refresh, stop, change };
  Kind kind = Kind::none;
  std::string slice;
  api::SliceChange change;
};

// Changes the state by a key. `page` is the number of rows that are visible.
TopAction press(TopState& state, const TopKey& key, const TopView& view, size_t page);

// Selects the nearest row if the selected one has ended.
void keep_selection(TopState& state, const std::vector<TopRow>& rows);

// Returns the change that a text such as "6GiB", "30%" or "6GiB 30%" describes, or why it describes none.
Result<api::SliceChange, std::string> parse_change(const std::string& text);
// Returns "memory 6 GiB and share 30%".
std::string change_text(const api::SliceChange& change);

}  // namespace carve::cli
