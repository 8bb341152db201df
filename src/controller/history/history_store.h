// history.db: the values of slices and devices over time, in one SQLite file (sqlite/database.h). One thread
// uses the store.
//
// A row of `minutes` has the points of all series in one minute. When an hour has been over for an hour, its
// minutes are replaced by one row of `hours` for each series, with the mean of each minute. Thus points of
// 5 s are kept for one to two hours, and those of 60 s for a week.
//
// The file has a size limit. When it is reached, the oldest hours are deleted first, then the oldest minutes.
// A minute is written in one transaction, so a crash loses at most the current minute. History is not worth a
// repair: a damaged block is skipped, and a damaged file is moved aside.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/history/history_block.h"
#include "controller/history/history_head.h"
#include "sqlite/database.h"

namespace carve::controller {

inline constexpr int64_t history_days = 7;
inline constexpr int64_t max_history_ns = history_days * 24 * history_hour_ns;
// Limit of the file with its write-ahead log.
inline constexpr uint64_t max_history_bytes = uint64_t{64} << 20;

// A series with the time of its values.
struct StoredSeries {
  uint64_t id = 0;
  HistorySeries series;
  int64_t first_ns = 0;
  int64_t last_ns = 0;  // The end of its newest minute. While the series is alive, up to two hours old.
};

// Consecutive values of a series.
struct StoredValues {
  uint64_t series = 0;
  int64_t from_ns = 0;
  int64_t width_ns = 0;  // The time of one point.
  std::vector<HistoryColumn> columns;
};

class HistoryStore {
 public:
  struct Opened;
  // `now_ns` is UTC. Deletes values that are newer, which a clock that was ahead has left.
  static Outcome<Opened> open(const std::string& path, int64_t now_ns,
                              uint64_t max_bytes = max_history_bytes);

  // Writes a minute, replaces the minutes of hours that are over, and deletes what is too old or too much. The
  // minute may be written in several parts. Nothing is written if it fails.
  Outcome<void> write(const HistoryMinute&);

  // Returns the series of this object, of each slice that has had the name. An empty node means every node.
  Outcome<std::vector<StoredSeries>> find(HistoryKind, const std::string& node, const std::string& name);
  // Calls `visit` for the values of these ascending series that overlap the period.
  Outcome<void> read(const std::vector<uint64_t>& series, int64_t from_ns, int64_t to_ns,
                     const std::function<void(StoredValues&&)>& visit);

  // Bytes in use, without free pages and the write-ahead log.
  uint64_t used_bytes() const;
  // Number of damaged blocks that were skipped.
  uint64_t skipped() const { return skipped_; }
  // Time of the oldest values; INT64_MAX if there are none.
  int64_t oldest_ns() const;

  static constexpr int schema_version = 1;

 private:
  HistoryStore(sqlite::Database database, uint64_t max_bytes)
      : database_(std::move(database)), max_bytes_(max_bytes) {}

  int write_series(const HistoryMinute&, std::vector<uint64_t>& ids);
  int end_series(const HistoryMinute&);
  int insert_minute(const HistoryMinute&, const std::vector<uint64_t>& ids);
  int replace_hour(int64_t hour_ns);
  int replace_hours_before(int64_t end_ns);
  int delete_before(int64_t end_ns);
  int make_room(uint64_t bytes);
  int forget_series();

  struct Live {
    uint64_t id = 0;
    int64_t minute_ns = 0;  // Its newest minute.
  };
  sqlite::Database database_;
  uint64_t max_bytes_;
  std::unordered_map<std::string, Live> live_;  // Keyed by HistorySeries::key().
  uint64_t skipped_ = 0;
};

struct HistoryStore::Opened {
  HistoryStore store;
  std::string moved_aside;  // New path of a damaged file; empty if it was sound or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::controller
