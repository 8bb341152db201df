// The form in which the history is stored: a block has the values of several series over the same points of
// time. Within a column only differences are stored, and repetitions are counted, so a value that doesn't
// change for an hour takes at most 7 bytes. Pure functions.
//
//   block   = version (1 byte), points (1 byte), entry..., CRC-32 of all bytes before it (4 bytes, little endian)
//   entry   = id minus the previous id, size in bytes of the rest, number of columns, column...
//   column  = token..., until all points have a value or are absent
//   token   = count * 4 + 0: the previous value, `count` times; count * 4 + 1: `count` points without a value;
//             z * 4 + 2: one value; z is its difference to the previous value, which is 0 at first, in zigzag form
//
// All other numbers are unsigned LEB128. A reader rejects a block with a wrong
// checksum, and never reads beyond its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/history/history_metrics.h"

namespace carve::controller {

using HistoryColumn = std::vector<StepCount>;

struct HistoryEntry {
  uint64_t series = 0;
  std::vector<HistoryColumn> columns;  // In the order of the metrics; each has a value for every point.

  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default;
};

inline constexpr size_t max_block_points = 60;

// The entries have ascending, different series and at most `max_history_metrics` columns.
std::string encode_block(std::span<const HistoryEntry> entries, size_t points);

// Reads a block without copying it.
class HistoryBlock {
 public:
  // Returns no value if the bytes are not a block that encode_block() made.
  static std::optional<HistoryBlock> open(std::string_view bytes);

  size_t points() const { return points_; }
  // Calls `visit` for the entries of these ascending series. Returns false if the block is malformed.
  bool each(std::span<const uint64_t> series, const std::function<void(HistoryEntry&&)>& visit) const;
  // Calls `visit` for every entry.
  bool each(const std::function<void(HistoryEntry&&)>& visit) const;

 private:
  HistoryBlock(std::string_view entries, size_t points) : entries_(entries), points_(points) {}
  bool visit_entries(const std::function<bool(uint64_t series)>& selects,
                     const std::function<void(HistoryEntry&&)>& visit) const;

  std::string_view entries_;
  size_t points_ = 0;
};

}  // namespace carve::controller
