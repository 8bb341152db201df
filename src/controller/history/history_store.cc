#include "controller/history/history_store.h"

#include <algorithm>
#include <map>

#include "core/invariant.h"
#include "sqlite/rows.h"

namespace carve::controller {
namespace {

using sqlite::Blob;
using sqlite::Statement;

// `id` of `hours` is hour * 2^32 + series, so that an hour is one range of rows, and a series in it is one
// look-up. Times are whole minutes and hours since 1970.
constexpr const char* history_script =
    "CREATE TABLE series (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, node TEXT NOT NULL, name TEXT NOT "
    "NULL, created_ns INTEGER NOT NULL, device TEXT NOT NULL, device_index INTEGER NOT NULL, owner_uid "
    "INTEGER "
    "NOT NULL, account TEXT NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL) STRICT;"
    "CREATE INDEX series_name ON series(name, kind);"
    "CREATE TABLE minutes (id INTEGER PRIMARY KEY, minute INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
    "CREATE INDEX minutes_minute ON minutes(minute);"
    "CREATE TABLE hours (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;";

constexpr int series_bits = 32;
constexpr uint64_t page_bytes = 4096;

// Returns the part of the limit that remains for the write-ahead log, which is emptied after each minute. With
// `max_live_series` series, the rows of an hour take 12 MiB.
constexpr uint64_t log_bytes(uint64_t max_bytes) { return max_bytes / 4; }

int64_t hours_id(int64_t hour_ns, uint64_t series) {
  return (hour_ns / history_hour_ns) << series_bits | static_cast<int64_t>(series);
}
int64_t hour_of_id(int64_t id) { return (id >> series_bits) * history_hour_ns; }
int64_t hour_of(int64_t time_ns) { return time_ns - time_ns % history_hour_ns; }

// Runs the statement, and returns SQLITE_OK or the error's code.
int run(sqlite3* connection, const char* sql, std::initializer_list<int64_t> values) {
  Statement s(connection, sql);
  for (const int64_t value : values) s << value;
  return s.finish();
}

// Returns the first column of the first row; `otherwise` if it is absent.
int64_t number_of(sqlite3* connection, const char* sql, int64_t otherwise,
                  std::initializer_list<int64_t> values = {}) {
  Statement s(connection, sql);
  for (const int64_t value : values) s << value;
  return s.row() && !s.is_null(0) ? s.number(0) : otherwise;
}

// The points of one minute, which several programs may have written in turn.
struct MinuteSum {
  uint64_t sum = 0;
  uint32_t count = 0;

  void add(std::span<const StepCount> points) {
    for (const StepCount point : points)
      if (point != no_value) sum += point, ++count;
  }
  StepCount mean() const { return count == 0 ? no_value : static_cast<StepCount>((sum + count / 2) / count); }
};

StepCount mean_of(std::span<const StepCount> points) {
  MinuteSum sum;
  sum.add(points);
  return sum.mean();
}

// The sums of each metric of a series in the minutes of an hour.
using HourSums = std::vector<std::array<MinuteSum, minutes_per_hour>>;

// Adds a block of the n-th minute. Returns false if it is damaged.
bool add_minute(std::string_view bytes, size_t n, std::map<uint64_t, HourSums>& hour) {
  const auto block = HistoryBlock::open(bytes);
  return block && block->each([&](HistoryEntry&& entry) {
    HourSums& sums = hour[entry.series];
    sums.resize(std::max(sums.size(), entry.columns.size()));
    for (size_t i = 0; i < entry.columns.size(); ++i) sums[i][n].add(entry.columns[i]);
  });
}

HistoryEntry entry_of(uint64_t id, const HourSums& sums) {
  HistoryEntry out{.series = id, .columns = {}};
  for (const auto& metric : sums) {
    out.columns.emplace_back();
    for (const MinuteSum& minute : metric) out.columns.back().push_back(minute.mean());
  }
  return out;
}

HistoryEntry entry_of(uint64_t id, const SeriesMinute& minute, bool is_fine) {
  HistoryEntry out{.series = id, .columns = {}};
  for (size_t i = 0; i < metrics_of(minute.series.kind); ++i) {
    const auto& points = minute.points[i];
    out.columns.push_back(is_fine ? HistoryColumn(points.begin(), points.end())
                                  : HistoryColumn{mean_of(points)});
  }
  return out;
}

}  // namespace

Outcome<HistoryStore::Opened> HistoryStore::open(const std::string& path, int64_t now_ns,
                                                 uint64_t max_bytes) {
  invariant(max_bytes > page_bytes * 100);
  auto opened = sqlite::Database::open(path,
                                       {.name = "history database",
                                        .option = "--state",
                                        .version = schema_version,
                                        .script = history_script,
                                        .users = sqlite::Users::one_thread},
                                       now_ns / history_second_ns);
  if (!opened) return tl::unexpected(opened.error());
  sqlite::Database& database = opened->database;
  database.limit_pages(static_cast<int64_t>((max_bytes - log_bytes(max_bytes)) / page_bytes));
  // Pages that are written to the log before the end of a transaction may be written twice.
  database.execute("PRAGMA cache_spill = OFF");
  const auto cleared = database.transact([&](sqlite3* db) {
    if (const int code = run(db, "DELETE FROM minutes WHERE minute * 60000000000 > ?", {now_ns})) return code;
    return run(db, "DELETE FROM hours WHERE id > ?", {hours_id(now_ns, UINT32_MAX)});
  });
  if (!cleared) return tl::unexpected(cleared.error());
  return Opened{.store = HistoryStore(std::move(database), max_bytes),
                .moved_aside = std::move(opened->moved_aside),
                .damage = std::move(opened->damage)};
}

uint64_t HistoryStore::used_bytes() const {
  const int64_t pages = number_of(database_.get(), "PRAGMA page_count", 0) -
                        number_of(database_.get(), "PRAGMA freelist_count", 0);
  return static_cast<uint64_t>(std::max<int64_t>(pages, 0)) * page_bytes;
}

int64_t HistoryStore::oldest_ns() const {
  const int64_t hour = number_of(database_.get(), "SELECT min(id) FROM hours", -1);
  const int64_t minute = number_of(database_.get(), "SELECT min(minute) FROM minutes", -1);
  return std::min(hour < 0 ? INT64_MAX : hour_of_id(hour),
                  minute < 0 ? INT64_MAX : minute * history_minute_ns);
}

Outcome<void> HistoryStore::write(const HistoryMinute& minute) {
  std::vector<uint64_t> ids;
  const auto before = live_;
  auto done = database_.transact([&](sqlite3*) {
    const int64_t oldest_ns = minute.from_ns + history_minute_ns - max_history_ns;
    if (const int code = delete_before(std::max<int64_t>(oldest_ns, 0))) return code;
    if (const int code = replace_hours_before(minute.from_ns - history_hour_ns)) return code;
    if (const int code = write_series(minute, ids)) return code;
    if (const int code = insert_minute(minute, ids)) return code;
    return end_series(minute);
  });
  if (!done)
    live_ = before;
  else
    database_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  return done;
}

// Sets the id of each series, and adds a row for those that have none.
int HistoryStore::write_series(const HistoryMinute& minute, std::vector<uint64_t>& ids) {
  sqlite3* db = database_.get();
  Statement known(
      db,
      "SELECT id FROM series WHERE name = ? AND kind = ? AND node = ? AND created_ns = ? AND device "
      "= ?");
  Statement insert(db, "INSERT INTO series VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Statement update(db, "UPDATE series SET last_ns = ?, device_index = ? WHERE id = ?");
  const int64_t end_ns = minute.from_ns + history_minute_ns;
  for (const SeriesMinute& each : minute.series) {
    const HistorySeries& s = each.series;
    auto [live, is_new] = live_.try_emplace(s.key());
    live->second.minute_ns = minute.from_ns;
    if (is_new) {
      known.restart() << s.name << static_cast<int>(s.kind) << s.node << s.created_ns << s.device;
      if (known.row()) {
        live->second.id = static_cast<uint64_t>(known.number(0));
        update.restart() << end_ns << s.index << live->second.id;
        if (const int code = update.finish()) return code;
      } else {
        insert.restart() << static_cast<int>(s.kind) << s.node << s.name << s.created_ns << s.device
                         << s.index << s.owner_uid << s.account << minute.from_ns << end_ns;
        if (const int code = insert.finish()) return code;
        live->second.id = static_cast<uint64_t>(sqlite3_last_insert_rowid(db));
      }
    }
    ids.push_back(live->second.id);
  }
  return SQLITE_OK;
}

// Records the end of the series that have no points in this minute.
int HistoryStore::end_series(const HistoryMinute& minute) {
  Statement update(database_.get(), "UPDATE series SET last_ns = ? WHERE id = ?");
  for (auto live = live_.begin(); live != live_.end();) {
    if (live->second.minute_ns >= minute.from_ns) {
      ++live;
      continue;
    }
    update.restart() << live->second.minute_ns + history_minute_ns << live->second.id;
    if (const int code = update.finish()) return code;
    live = live_.erase(live);
  }
  return SQLITE_OK;
}

int HistoryStore::insert_minute(const HistoryMinute& minute, const std::vector<uint64_t>& ids) {
  const bool is_fine = minute.series.size() <= max_fine_series;
  std::vector<HistoryEntry> entries;
  for (size_t i = 0; i < ids.size(); ++i) entries.push_back(entry_of(ids[i], minute.series[i], is_fine));
  std::ranges::sort(entries, {}, &HistoryEntry::series);
  const std::string block = encode_block(entries, is_fine ? points_per_minute : 1);
  if (const int code = make_room(block.size())) return code;
  Statement s(database_.get(), "INSERT INTO minutes VALUES (NULL, ?, ?)");
  s << minute.from_ns / history_minute_ns << Blob{block};
  return s.finish();
}

int HistoryStore::replace_hour(int64_t hour_ns) {
  sqlite3* db = database_.get();
  const int64_t first = hour_ns / history_minute_ns, end = first + int64_t{minutes_per_hour};
  std::map<uint64_t, HourSums> hour;
  {
    Statement s(db, "SELECT minute, data FROM minutes WHERE minute >= ? AND minute < ?");
    s << first << end;
    while (s.row())
      if (!add_minute(s.text(1), static_cast<size_t>(s.number(0) - first), hour)) ++skipped_;
    if (const int code = s.finish()) return code;
  }
  if (const int code = run(db, "DELETE FROM minutes WHERE minute >= ? AND minute < ?", {first, end}))
    return code;
  Statement insert(db, "INSERT OR REPLACE INTO hours VALUES (?, ?)");
  Statement update(db, "UPDATE series SET last_ns = max(last_ns, ?) WHERE id = ?");
  for (const auto& [series, sums] : hour) {
    const HistoryEntry entry = entry_of(series, sums);
    const std::string block = encode_block({&entry, 1}, minutes_per_hour);
    if (const int code = make_room(block.size())) return code;
    insert.restart() << hours_id(hour_ns, series) << Blob{block};
    if (const int code = insert.finish()) return code;
    update.restart() << hour_ns + history_hour_ns << series;
    if (const int code = update.finish()) return code;
  }
  return SQLITE_OK;
}

// Replaces the minutes of all hours that ended before this time.
int HistoryStore::replace_hours_before(int64_t end_ns) {
  for (;;) {
    const int64_t minute = number_of(database_.get(), "SELECT min(minute) FROM minutes", -1);
    const int64_t hour_ns = hour_of(minute * history_minute_ns);
    if (minute < 0 || hour_ns + history_hour_ns > end_ns) return SQLITE_OK;
    if (const int code = replace_hour(hour_ns)) return code;
  }
}

int HistoryStore::delete_before(int64_t end_ns) {
  sqlite3* db = database_.get();
  if (oldest_ns() >= hour_of(end_ns)) return SQLITE_OK;
  if (const int code = run(db, "DELETE FROM hours WHERE id < ?", {hours_id(end_ns, 0)})) return code;
  if (const int code = run(db, "DELETE FROM minutes WHERE minute < ?", {end_ns / history_minute_ns}))
    return code;
  return forget_series();
}

// Deletes the oldest values until this many bytes fit in addition to those in use.
int HistoryStore::make_room(uint64_t bytes) {
  sqlite3* db = database_.get();
  // A transaction needs some pages for the nodes of its trees.
  const uint64_t limit = max_bytes_ - log_bytes(max_bytes_) - max_bytes_ / 16;
  while (used_bytes() + bytes > limit) {
    const int64_t hour = number_of(db, "SELECT min(id) FROM hours", -1);
    const int64_t minute = number_of(db, "SELECT min(minute) FROM minutes", -1);
    if (hour < 0 && minute < 0) return SQLITE_OK;
    const int code = hour >= 0 ? run(db, "DELETE FROM hours WHERE id < ?",
                                     {hours_id(hour_of_id(hour) + history_hour_ns, 0)})
                               : run(db, "DELETE FROM minutes WHERE minute = ?", {minute});
    if (code != SQLITE_OK) return code;
    if (const int forgotten = forget_series()) return forgotten;
  }
  return SQLITE_OK;
}

// Deletes the series whose values have been deleted.
int HistoryStore::forget_series() {
  const int64_t oldest = oldest_ns();
  if (oldest == INT64_MAX) return SQLITE_OK;
  Statement update(database_.get(), "UPDATE series SET last_ns = max(last_ns, ?) WHERE id = ?");
  for (const auto& [key, live] : live_) {
    update.restart() << live.minute_ns + history_minute_ns << live.id;
    if (const int code = update.finish()) return code;
  }
  return run(database_.get(), "DELETE FROM series WHERE last_ns <= ?", {oldest});
}

Outcome<std::vector<StoredSeries>> HistoryStore::find(HistoryKind kind, const std::string& node,
                                                      const std::string& name) {
  std::vector<StoredSeries> out;
  Statement s(database_.get(),
              "SELECT id, node, created_ns, device, device_index, owner_uid, account, first_ns, last_ns FROM "
              "series WHERE name = ? AND kind = ? ORDER BY id");
  s << name << static_cast<int>(kind);
  while (s.row()) {
    StoredSeries each{.id = static_cast<uint64_t>(s.number(0)),
                      .series = {.kind = kind,
                                 .node = s.text(1),
                                 .name = name,
                                 .created_ns = s.number(2),
                                 .device = s.text(3),
                                 .index = static_cast<uint32_t>(s.number(4)),
                                 .owner_uid = static_cast<uint32_t>(s.number(5)),
                                 .account = s.text(6)},
                      .first_ns = s.number(7),
                      .last_ns = s.number(8)};
    if (!sqlite::is_utf8(each.series.node) || !sqlite::is_utf8(each.series.device)) {
      ++skipped_;
      continue;
    }
    if (const auto live = live_.find(each.series.key()); live != live_.end())
      each.last_ns = live->second.minute_ns + history_minute_ns;
    if (node.empty() || each.series.node == node) out.push_back(std::move(each));
  }
  if (!s.done()) return database_.trouble("reading");
  return out;
}

Outcome<void> HistoryStore::read(const std::vector<uint64_t>& series, int64_t from_ns, int64_t to_ns,
                                 const std::function<void(StoredValues&&)>& visit) {
  invariant(std::ranges::is_sorted(series));
  const auto pass_on = [&](int64_t begin_ns, int64_t width_ns, const std::string& bytes) {
    const auto block = HistoryBlock::open(bytes);
    const bool is_read = block && block->each(series, [&](HistoryEntry&& entry) {
      visit({.series = entry.series,
             .from_ns = begin_ns,
             .width_ns = width_ns / static_cast<int64_t>(block->points()),
             .columns = std::move(entry.columns)});
    });
    if (!is_read) ++skipped_;
  };
  const int64_t begin_ns = std::max(hour_of(from_ns), oldest_ns());
  Statement hours(database_.get(), "SELECT data FROM hours WHERE id = ?");
  for (const uint64_t id : series)
    for (int64_t hour_ns = hour_of(begin_ns); hour_ns < to_ns; hour_ns += history_hour_ns) {
      hours.restart() << hours_id(hour_ns, id);
      if (hours.row()) pass_on(hour_ns, history_hour_ns, hours.text(0));
    }
  Statement minutes(
      database_.get(),
      "SELECT minute, data FROM minutes WHERE minute >= ? AND minute * 60000000000 < ? ORDER BY "
      "minute, id");
  minutes << from_ns / history_minute_ns << to_ns;
  while (minutes.row()) pass_on(minutes.number(0) * history_minute_ns, history_minute_ns, minutes.text(1));
  return minutes.done() ? Outcome<void>() : database_.trouble("reading");
}

}  // namespace carve::controller
