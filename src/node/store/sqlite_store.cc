#include "node/store/sqlite_store.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sqlite/rows.h"

namespace carve::node {
namespace {

using ledger::Change;
using ledger::Ledger;
using ledger::UsageRecord;
using sqlite::Statement;
namespace rows = sqlite::rows;

// Tables whose rows belong to a record. The first two columns are the record's id and the position.
constexpr const char* part_table = "part";
constexpr const char* period_table = "period";

template <class T>
std::string table_of_record(const char* name) {
  return fmt::format(
      "CREATE TABLE {} (record INTEGER REFERENCES record(id), position INTEGER, {}, PRIMARY KEY (record, "
      "position)) "
      "STRICT;",
      name, rows::declarations<T>());
}

// The tables have a column for each field of the structs.
const std::string& script() {
  static const std::string text = fmt::format(
      "CREATE TABLE device ({}, PRIMARY KEY (uuid)) STRICT;"
      "CREATE TABLE record ({}, PRIMARY KEY (id)) STRICT;"
      "CREATE TABLE label (record INTEGER REFERENCES record(id), key TEXT, value TEXT, PRIMARY KEY (record, "
      "key)) STRICT;"
      "{}{}"
      "CREATE TABLE alive (id INTEGER PRIMARY KEY CHECK (id = 1), {}) STRICT;"
      "CREATE TABLE generation (id INTEGER PRIMARY KEY CHECK (id = 1), {}) STRICT;"
      "CREATE UNIQUE INDEX living_name ON record(slice_name) WHERE to_utc_ns IS NULL;",
      rows::declarations<Device>(), rows::declarations<UsageRecord>(), table_of_record<SlicePart>(part_table),
      table_of_record<ledger::Period>(period_table), rows::declarations<ledger::Stamp>(),
      rows::declarations<ledger::Generation>());
  return text;
}

// Returns "INSERT INTO table (columns) VALUES (?, ...)".
template <class T>
std::string insert_into(const char* table, std::vector<std::string> first = {}, const char* verb = "INSERT") {
  for (std::string& column : rows::columns<T>()) first.push_back(std::move(column));
  return fmt::format("{} INTO {} ({}) VALUES ({})", verb, table, fmt::join(first, ", "),
                     fmt::join(std::vector<std::string>(first.size(), "?"), ", "));
}

int insert(sqlite3* db, const ledger::DeviceSeen& seen) {
  Statement s(db, insert_into<Device>("device", {}, "INSERT OR REPLACE").c_str());
  rows::bind(s, seen.device);
  return s.finish();
}

template <class T>
int insert_rows(sqlite3* db, const char* table, uint64_t record, const std::vector<T>& values) {
  int64_t position = 0;
  for (const T& value : values) {
    Statement s(db, insert_into<T>(table, {"record", "position"}).c_str());
    s << record << position++;
    rows::bind(s, value);
    if (const int code = s.finish()) return code;
  }
  return SQLITE_OK;
}

int insert(sqlite3* db, const ledger::Granted& granted) {
  const UsageRecord& record = granted.record;
  Statement known(db, "SELECT 1 FROM record WHERE id = ?");
  known << record.id;
  if (known.row()) return SQLITE_OK;
  Statement s(db, insert_into<UsageRecord>("record").c_str());
  rows::bind(s, record);
  if (const int code = s.finish()) return code;
  for (const auto& [key, value] : record.slice.labels) {
    Statement label(db, "INSERT INTO label VALUES (?, ?, ?)");
    label << record.id << key << value;
    if (const int code = label.finish()) return code;
  }
  if (const int code = insert_rows(db, part_table, record.id, record.slice.parts)) return code;
  return insert_rows(db, period_table, record.id, record.periods);  // Only when a lost ledger is rebuilt.
}

// Sets a column of all parts of a record, unless the first part already has the value.
int set_amount(sqlite3* db, const char* column, uint64_t amount, uint64_t record) {
  Statement first(db, fmt::format("SELECT {} FROM part WHERE record = ? AND position = 0", column).c_str());
  first << record;
  if (first.row() && static_cast<uint64_t>(first.number(0)) == amount) return SQLITE_OK;
  Statement parts(db, fmt::format("UPDATE part SET {} = ? WHERE record = ?", column).c_str());
  parts << amount << record;
  return parts.finish();
}

// The old terms become an ended period, and the rows of the record get the new terms.
int insert(sqlite3* db, const ledger::Altered& altered) {
  const ledger::Terms& t = altered.terms;
  Statement was(
      db,
      "INSERT INTO period (record, position, terms_memory_bytes, terms_share_bp, terms_policy, terms_latency,"
      " terms_isolation, to_utc_ns, to_boot_id, to_monotonic_ns)"
      " SELECT r.id, (SELECT COALESCE(MAX(position), -1) + 1 FROM period WHERE record = r.id),"
      " p.memory_bytes, p.share_bp, r.slice_policy, r.slice_latency, r.slice_isolation, ?, ?, ?"
      " FROM record r JOIN part p ON p.record = r.id AND p.position = 0 WHERE r.id = ?");
  rows::bind(was, altered.when);
  was << altered.id;
  if (const int code = was.finish()) return code;
  Statement record(db,
                   "UPDATE record SET slice_policy = ?, slice_latency = ?, slice_isolation = ? WHERE id = ?");
  rows::bind(record, t.policy);
  rows::bind(record, t.latency);
  rows::bind(record, t.isolation);
  record << altered.id;
  if (const int code = record.finish()) return code;
  // As in ledger::set_terms(), an unchanged amount is kept on each part.
  if (const int code = set_amount(db, "memory_bytes", t.memory.count, altered.id)) return code;
  return set_amount(db, "share_bp", t.share.basis_points, altered.id);
}

int insert(sqlite3* db, const ledger::Ended& ended) {
  Statement s(db,
              "UPDATE record SET to_utc_ns = ?, to_boot_id = ?, to_monotonic_ns = ?, end_reason = ?,"
              " busy_ns = MAX(busy_ns, ?), peak_bytes = MAX(peak_bytes, ?) WHERE id = ?");
  rows::bind(s, ended.when);
  s << ended.why << ended.used.busy_ns << ended.used.peak_bytes << ended.id;
  return s.finish();
}

int insert(sqlite3* db, const ledger::Alive& alive) {
  Statement s(db, insert_into<ledger::Stamp>("alive", {"id"}, "INSERT OR REPLACE").c_str());
  s << 1;
  rows::bind(s, alive.when);
  if (const int code = s.finish()) return code;
  for (const auto& [id, used] : alive.used) {
    Statement record(
        db, "UPDATE record SET busy_ns = MAX(busy_ns, ?), peak_bytes = MAX(peak_bytes, ?) WHERE id = ?");
    record << used.busy_ns << used.peak_bytes << id;
    if (const int code = record.finish()) return code;
  }
  return SQLITE_OK;
}

int insert(sqlite3* db, const ledger::Generation& generation) {
  Statement s(db, insert_into<ledger::Generation>("generation", {"id"}, "INSERT OR REPLACE").c_str());
  s << 1;
  rows::bind(s, generation);
  return s.finish();
}

// Selects the records to read: `ids` is a list of ids or a query for them in SQL, with a placeholder for each
// value.
struct Selection {
  std::string ids;
  std::vector<int64_t> values;

  std::string sql(const std::string& before, const char* after) const {
    return fmt::format("{} IN ({}) {}", before, ids, after);
  }
  void bind(Statement& s) const {
    for (const int64_t value : values) s << value;
  }
};

// Reads a table whose rows belong to records, and calls `add` with each record and row.
template <class T, class Add>
Outcome<void> read_rows(const sqlite::Database& database, const char* table, const Selection& selection,
                        std::map<uint64_t, UsageRecord>& records, const Add& add) {
  const std::string before =
      fmt::format("SELECT record, {} FROM {} WHERE record", fmt::join(rows::columns<T>(), ", "), table);
  Statement s(database.get(), selection.sql(before, "ORDER BY record, position").c_str());
  selection.bind(s);
  while (s.row()) {
    const auto record = records.find(static_cast<uint64_t>(s.number(0)));
    if (record == records.end()) continue;
    T value;
    int column = 1;
    std::string wrong;
    if (!rows::read(s, column, value, wrong))
      return database.unknown_value(
          fmt::format("'{}' in the {}s of '{}'", wrong, table, record->second.slice.name));
    add(record->second, std::move(value));
  }
  return s.done() ? Outcome<void>() : database.trouble("reading");
}

// Reads the selected records with their rows in the other tables.
Outcome<std::map<uint64_t, UsageRecord>> read_records(const sqlite::Database& database,
                                                      const Selection& selection) {
  std::map<uint64_t, UsageRecord> out;
  const std::string before =
      fmt::format("SELECT {} FROM record WHERE id", fmt::join(rows::columns<UsageRecord>(), ", "));
  Statement s(database.get(), selection.sql(before, "").c_str());
  selection.bind(s);
  while (s.row()) {
    UsageRecord record;
    int column = 0;
    std::string wrong;
    if (!rows::read(s, column, record, wrong))
      return database.unknown_value(fmt::format("'{}' in the record of '{}'", wrong, record.slice.name));
    out.emplace(record.id, std::move(record));
  }
  if (!s.done()) return database.trouble("reading");
  const auto parts =
      read_rows<SlicePart>(database, part_table, selection, out,
                           [](UsageRecord& r, const SlicePart& part) { r.slice.parts.push_back(part); });
  if (!parts) return tl::unexpected(parts.error());
  const auto periods = read_rows<ledger::Period>(database, period_table, selection, out,
                                                 [](UsageRecord& r, ledger::Period period) {
                                                   r.periods.push_back(std::move(period));
                                                   if (r.periods.size() > Ledger::max_periods)
                                                     r.periods.erase(r.periods.begin());
                                                 });
  if (!periods) return tl::unexpected(periods.error());
  Statement labels(database.get(),
                   selection.sql("SELECT record, key, value FROM label WHERE record", "").c_str());
  selection.bind(labels);
  while (labels.row())
    if (const auto record = out.find(static_cast<uint64_t>(labels.number(0))); record != out.end())
      record->second.slice.labels.emplace(labels.text(1), labels.text(2));
  if (!labels.done()) return database.trouble("reading");
  return out;
}

}  // namespace

Outcome<SqliteStore::Opened> SqliteStore::open(const std::string& path, int64_t now_s) {
  const sqlite::Schema schema{"ledger", "--state", schema_version, script().c_str()};
  auto opened = sqlite::Database::open(path, schema, now_s);
  if (!opened) return tl::unexpected(opened.error());
  Opened out{std::unique_ptr<SqliteStore>(new SqliteStore(std::move(opened->database))), opened->moved_aside,
             opened->damage};
  auto sound = out.store->check();
  if (sound) sound = out.store->read_generation();
  if (sound) return out;
  if (sound.error().kind != FailureKind::failed_precondition || !out.moved_aside.empty())
    return tl::unexpected(sound.error());
  out.store.reset();
  auto aside = sqlite::Database::move_aside(path, schema, now_s, sound.error().message);
  if (!aside) return tl::unexpected(aside.error());
  auto fresh = open(path, now_s);
  if (fresh) fresh->moved_aside = std::move(*aside), fresh->damage = sound.error().message;
  return fresh;
}

// SQLite detects only damaged pages. Values in a page may also have changed, so that they are invalid or
// contradict each other.
Outcome<void> SqliteStore::check() {
  const auto changes = read();
  if (!changes) return tl::unexpected(changes.error());
  Ledger ledger;
  for (const Change& change : *changes)
    if (const auto good = ledger.apply(change); !good)
      return failure(FailureKind::failed_precondition, "the ledger contradicts itself: {}",
                     good.error().message);
  return {};
}

// A file without a generation is new or has lost it. In both cases a new generation begins.
Outcome<void> SqliteStore::read_generation() {
  {
    Statement s(database_.get(),
                fmt::format("SELECT {} FROM generation", fmt::join(rows::columns<ledger::Generation>(), ", "))
                    .c_str());
    int column = 0;
    std::string wrong;
    if (s.row() && rows::read(s, column, generation_, wrong) && !generation_.ledger.empty()) return {};
  }
  {
    Statement fresh(database_.get(), "SELECT lower(hex(randomblob(8)))");
    if (!fresh.row()) return database_.trouble("reading");
    generation_ = {.ledger = fresh.text(0), .changes = 0};
  }
  return database_.transact([&](sqlite3* db) { return insert(db, generation_); });
}

Outcome<void> SqliteStore::write(const Change& change) {
  const ledger::Generation next{generation_.ledger, generation_.changes + 1};
  const auto written = database_.transact([&](sqlite3* db) {
    const int code = std::visit([&](const auto& c) { return insert(db, c); }, change);
    return code != SQLITE_OK ? code : insert(db, next);
  });
  if (written) generation_ = next;
  return written;
}

Outcome<void> SqliteStore::raise_changes(uint64_t changes) {
  const ledger::Generation next{generation_.ledger, std::max(changes, generation_.changes)};
  const auto written = database_.transact([&](sqlite3* db) { return insert(db, next); });
  if (written) generation_ = next;
  return written;
}

Outcome<std::vector<Change>> SqliteStore::read() {
  std::vector<Device> devices;
  Statement d(database_.get(), fmt::format("SELECT {} FROM device ORDER BY \"index\"",
                                           fmt::join(rows::columns<Device>(), ", "))
                                   .c_str());
  while (d.row()) {
    Device device;
    int column = 0;
    std::string wrong;
    if (!rows::read(d, column, device, wrong))
      return database_.unknown_value(fmt::format("an invalid device '{}'", wrong));
    devices.push_back(device);
  }
  if (!d.done()) return database_.trouble("reading");
  auto records = read_records(
      database_, {.ids = "SELECT id FROM record WHERE to_utc_ns IS NULL UNION ALL SELECT * FROM (SELECT id "
                         "FROM record WHERE to_utc_ns IS NOT NULL ORDER BY id DESC LIMIT ?)",
                  .values = {static_cast<int64_t>(Ledger::max_ended_records)}});
  if (!records) return tl::unexpected(records.error());

  std::vector<Change> out;
  for (Device device : devices) {
    device.reserved = {};
    out.emplace_back(ledger::DeviceSeen{device});
  }
  for (auto& [id, record] : *records) out.emplace_back(ledger::Granted{std::move(record)});
  for (const Device& device : devices) out.emplace_back(ledger::DeviceSeen{device});
  Statement alive(
      database_.get(),
      fmt::format("SELECT {} FROM alive", fmt::join(rows::columns<ledger::Stamp>(), ", ")).c_str());
  if (alive.row()) {
    ledger::Alive last;
    int column = 0;
    std::string wrong;
    if (rows::read(alive, column, last.when, wrong)) out.emplace_back(last);
  }
  return out;
}

namespace {

Outcome<std::vector<UsageRecord>> in_order(Outcome<std::map<uint64_t, UsageRecord>> records) {
  if (!records) return tl::unexpected(records.error());
  std::vector<UsageRecord> out;
  for (auto& [id, record] : *records) out.push_back(std::move(record));
  return out;
}

}  // namespace

Outcome<std::vector<UsageRecord>> SqliteStore::records_after(uint64_t id, size_t most) {
  return in_order(read_records(
      database_, {.ids = fmt::format("SELECT id FROM record WHERE id > ? ORDER BY id LIMIT {}", most),
                  .values = {static_cast<int64_t>(id)}}));
}

Outcome<std::vector<UsageRecord>> SqliteStore::records(const std::vector<uint64_t>& ids) {
  return in_order(read_records(
      database_, {.ids = fmt::format("{}", fmt::join(std::vector<std::string>(ids.size(), "?"), ", ")),
                  .values = {ids.begin(), ids.end()}}));
}

}  // namespace carve::node
