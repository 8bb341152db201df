#include "node/store/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>

namespace carve::node {
namespace {

using ledger::Change;
using ledger::Ledger;
using ledger::Stamp;
using ledger::UsageRecord;
using K = FailureKind;

// Step n migrates version n to n + 1.
constexpr const char* migrations[SqliteStore::schema_version] = {
    R"(CREATE TABLE device (uuid TEXT PRIMARY KEY, idx INTEGER, name TEXT, native INTEGER, reserved INTEGER) STRICT;
       CREATE TABLE use (id INTEGER PRIMARY KEY, name TEXT NOT NULL, request_id TEXT NOT NULL, owner INTEGER,
         exclusive INTEGER, persistent INTEGER, isolation INTEGER, policy INTEGER, latency INTEGER,
         from_utc INTEGER, from_boot TEXT, from_mono INTEGER,
         to_utc INTEGER, to_boot TEXT, to_mono INTEGER, why TEXT) STRICT;
       CREATE TABLE slice (use INTEGER REFERENCES use(id), position INTEGER, device TEXT, memory INTEGER,
         share INTEGER, PRIMARY KEY (use, position)) STRICT;
       CREATE UNIQUE INDEX living_name ON use(name) WHERE to_utc IS NULL;)",
    "ALTER TABLE slice ADD COLUMN spill INTEGER NOT NULL DEFAULT 0;",
    R"(CREATE TABLE period (use INTEGER REFERENCES use(id), position INTEGER, memory INTEGER, share INTEGER,
         policy INTEGER, latency INTEGER, isolation INTEGER, to_utc INTEGER, to_boot TEXT, to_mono INTEGER,
         PRIMARY KEY (use, position)) STRICT;)",
    "ALTER TABLE use ADD COLUMN application TEXT NOT NULL DEFAULT '';",
};

// One prepared statement: bind in order, then step. The destructor finalizes it.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) { code_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& operator<<(const std::string& text) {
    if (good()) code_ = sqlite3_bind_text(statement_, ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement& operator<<(int64_t number) {
    if (good()) code_ = sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  // Returns true while there is a row.
  bool row() {
    if (good()) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  bool done() { return !row() && code_ == SQLITE_DONE; }
  // Runs to the end. Returns 0, or the error code, which the connection forgets at its next statement.
  int finished() { return done() ? SQLITE_OK : code_; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const {
    const auto* characters = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return characters == nullptr ? "" : characters;
  }

 private:
  bool good() const { return code_ == SQLITE_OK || code_ == SQLITE_ROW; }
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

// Returns false for a number that this version has no word for, because another version wrote it.
bool known(const ledger::Terms& t) {
  return t.isolation <= Isolation::memory_and_compute && t.policy <= Policy::native_burst_share &&
         t.latency <= LatencyClass::latency;
}

bool run(sqlite3* db, const char* sql) {
  return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

// Rolls back unless keep() was called.
class Transaction {
 public:
  explicit Transaction(sqlite3* db) : db_(db), begun_(run(db, "BEGIN IMMEDIATE")) {}
  ~Transaction() {
    if (begun_) run(db_, "ROLLBACK");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  bool keep() {
    if (!begun_ || !run(db_, "COMMIT")) return false;
    begun_ = false;
    return true;
  }
  explicit operator bool() const { return begun_; }

 private:
  sqlite3* db_;
  bool begun_;
};

int insert(sqlite3* db, const ledger::DeviceSeen& seen) {
  Statement s(db, "INSERT OR REPLACE INTO device VALUES (?, ?, ?, ?, ?)");
  const Device& d = seen.device;
  s << text(d.uuid) << d.index << d.name << static_cast<int64_t>(d.native.count)
    << static_cast<int64_t>(d.reserved.count);
  return s.finished();
}

int insert(sqlite3* db, const ledger::Granted& granted) {
  const UsageRecord& u = granted.record;
  Statement known(db, "SELECT 1 FROM use WHERE id = ?");
  known << static_cast<int64_t>(u.id);
  if (known.row()) return SQLITE_OK;
  Statement s(
      db,
      "INSERT INTO use (id, name, request_id, owner, exclusive, persistent, isolation, policy, latency,"
      " from_utc, from_boot, from_mono, application) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  s << static_cast<int64_t>(u.id) << u.slice.name << u.slice.request_id << u.slice.owner << u.slice.exclusive
    << u.slice.persistent << static_cast<int64_t>(u.slice.isolation) << static_cast<int64_t>(u.slice.policy)
    << static_cast<int64_t>(u.slice.latency) << u.from.utc_ns << u.from.boot_id << u.from.monotonic_ns
    << u.slice.application;
  if (const int code = s.finished()) return code;
  int64_t position = 0;
  for (const SlicePart& part : u.slice.parts) {
    Statement row(db, "INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?)");
    row << static_cast<int64_t>(u.id) << position++ << text(part.device)
        << static_cast<int64_t>(part.memory.count) << part.share.basis_points
        << static_cast<int64_t>(part.spill.count);
    if (const int code = row.finished()) return code;
  }
  position = 0;
  for (const ledger::Period& was : u.periods) {  // Only when a lost ledger is rebuilt.
    Statement period(db, "INSERT INTO period VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    period << static_cast<int64_t>(u.id) << position++ << static_cast<int64_t>(was.terms.memory.count)
           << was.terms.share.basis_points << static_cast<int64_t>(was.terms.policy)
           << static_cast<int64_t>(was.terms.latency) << static_cast<int64_t>(was.terms.isolation)
           << was.to.utc_ns << was.to.boot_id << was.to.monotonic_ns;
    if (const int code = period.finished()) return code;
  }
  return SQLITE_OK;
}

// The old terms become a period that ended, and the rows of the record get the new terms.
int insert(sqlite3* db, const ledger::Altered& altered) {
  const auto id = static_cast<int64_t>(altered.id);
  const ledger::Terms& t = altered.terms;
  Statement was(
      db,
      "INSERT INTO period SELECT u.id, (SELECT COALESCE(MAX(position), -1) + 1 FROM period WHERE use = "
      "u.id), s.memory, s.share, u.policy, u.latency, u.isolation, ?, ?, ? FROM use u JOIN slice s ON "
      "s.use = u.id AND s.position = 0 WHERE u.id = ?");
  was << altered.when.utc_ns << altered.when.boot_id << altered.when.monotonic_ns << id;
  if (const int code = was.finished()) return code;
  Statement record(db, "UPDATE use SET policy = ?, latency = ?, isolation = ? WHERE id = ?");
  record << static_cast<int64_t>(t.policy) << static_cast<int64_t>(t.latency)
         << static_cast<int64_t>(t.isolation) << id;
  if (const int code = record.finished()) return code;
  Statement slices(db, "UPDATE slice SET memory = ?, share = ? WHERE use = ?");
  slices << static_cast<int64_t>(t.memory.count) << t.share.basis_points << id;
  return slices.finished();
}

int insert(sqlite3* db, const ledger::Ended& ended) {
  Statement s(db, "UPDATE use SET to_utc = ?, to_boot = ?, to_mono = ?, why = ? WHERE id = ?");
  s << ended.when.utc_ns << ended.when.boot_id << ended.when.monotonic_ns << ended.why
    << static_cast<int64_t>(ended.id);
  return s.finished();
}

}  // namespace

SqliteStore::~SqliteStore() { sqlite3_close(db_); }

tl::unexpected<Failure> SqliteStore::trouble(const char* doing, int code) const {
  switch (code != 0 ? code : sqlite3_errcode(db_)) {
    case SQLITE_FULL:
      return failure(K::unavailable,
                     "{} the ledger {}: the disk is full; free some space there, nothing was changed", doing,
                     path_);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return failure(K::unavailable, "{} the ledger {}: no permission to write there", doing, path_);
    default:
      return failure(K::unavailable, "{} the ledger {}: {}", doing, path_,
                     code != 0 ? sqlite3_errstr(code) : sqlite3_errmsg(db_));
  }
}

void SqliteStore::limit_pages(int64_t pages) {
  run(db_, fmt::format("PRAGMA max_page_count = {}", pages).c_str());
}

// Brings the file to this schema. If the file is damaged, the connection's error code is SQLITE_CORRUPT or
// NOTADB.
Outcome<void> SqliteStore::prepare() {
  sqlite3_busy_timeout(db_, 2000);
  if (!run(db_, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"))
    return trouble("opening");
  {
    Statement check(db_, "PRAGMA quick_check(1)");
    if (!check.row()) return trouble("opening");
    if (check.text(0) != "ok") return failure(K::failed_precondition, "{}", check.text(0));
  }
  int64_t version = 0;
  {
    Statement s(db_, "PRAGMA user_version");
    if (!s.row()) return trouble("opening");
    version = s.number(0);
  }
  if (version > schema_version)
    return failure(
        K::unavailable,
        "the ledger {} was written by a newer carve (schema {}, this one has {}); use that carve, or another "
        "--state",
        path_, version, schema_version);
  if (version == schema_version) return {};
  Transaction all(db_);
  if (!all) return trouble("migrating");
  for (int64_t v = version; v < schema_version; ++v)
    if (!run(db_, migrations[v])) return trouble("migrating");
  if (!run(db_, fmt::format("PRAGMA user_version = {}", schema_version).c_str()) || !all.keep())
    return trouble("migrating");
  return {};
}

Outcome<SqliteStore::Opened> SqliteStore::open(const std::string& path, int64_t now_s) {
  Opened opened;
  for (int attempt = 0;; ++attempt) {
    // SQLite gives its two other files the mode of this one. Only the API may show who holds what.
    if (const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); file >= 0) ::close(file);
    chmod(path.c_str(), 0600);
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    opened.store.reset(new SqliteStore(db, path));
    if (code != SQLITE_OK) return opened.store->trouble("opening");
    const auto ready = opened.store->prepare();
    if (ready) return opened;
    const int reason = sqlite3_errcode(db);
    const bool damaged =
        reason == SQLITE_CORRUPT || reason == SQLITE_NOTADB || ready.error().kind == K::failed_precondition;
    if (!damaged || attempt > 0) return tl::unexpected(ready.error());
    opened.store.reset();
    opened.damage = ready.error().sentence;
    opened.moved_aside = fmt::format("{}.corrupt-{}", path, now_s);
    for (const char* part : {"", "-wal", "-shm"})
      if (std::rename((path + part).c_str(), (opened.moved_aside + part).c_str()) != 0 && *part == '\0')
        return failure(K::unavailable, "the ledger {} is damaged ({}) and cannot be moved aside: {}", path,
                       opened.damage, strerror(errno));
  }
}

Outcome<void> SqliteStore::write(const Change& change) {
  Transaction all(db_);
  if (!all) return trouble("writing");
  if (const int code = std::visit([&](const auto& c) { return insert(db_, c); }, change))
    return trouble("writing", code);
  if (!all.keep()) return trouble("writing");
  return {};
}

Outcome<std::vector<Change>> SqliteStore::read() {
  std::vector<Device> devices;
  Statement d(db_, "SELECT uuid, idx, name, native, reserved FROM device ORDER BY idx");
  while (d.row()) {
    const auto uuid = parse_uuid(d.text(0));
    if (!uuid) return failure(K::unavailable, "the ledger {} has an invalid device '{}'", path_, d.text(0));
    devices.push_back({*uuid,
                       static_cast<unsigned>(d.number(1)),
                       d.text(2),
                       {static_cast<uint64_t>(d.number(3))},
                       {static_cast<uint64_t>(d.number(4))}});
  }

  std::map<uint64_t, UsageRecord> records;
  Statement u(
      db_,
      "SELECT id, name, request_id, owner, exclusive, persistent, isolation, policy, latency, from_utc,"
      " from_boot, from_mono, to_utc, to_boot, to_mono, why, application FROM use WHERE to_utc IS NULL OR id "
      "IN"
      " (SELECT id FROM use WHERE to_utc IS NOT NULL ORDER BY id DESC LIMIT ?)");
  u << static_cast<int64_t>(Ledger::max_ended_records);
  while (u.row()) {
    UsageRecord record;
    record.id = static_cast<uint64_t>(u.number(0));
    record.slice.name = u.text(1);
    record.slice.request_id = u.text(2);
    record.slice.owner = static_cast<uint32_t>(u.number(3));
    record.slice.exclusive = u.number(4) != 0;
    record.slice.persistent = u.number(5) != 0;
    record.slice.isolation = static_cast<Isolation>(u.number(6));
    record.slice.policy = static_cast<Policy>(u.number(7));
    record.slice.latency = static_cast<LatencyClass>(u.number(8));
    if (!known(ledger::terms_of(record.slice)))
      return failure(K::unavailable, "the ledger {} has an unknown value in the terms of '{}'", path_,
                     record.slice.name);
    record.from = {u.number(9), u.text(10), u.number(11)};
    if (!u.null(12)) record.to = Stamp{u.number(12), u.text(13), u.number(14)};
    record.end_reason = u.text(15);
    record.slice.application = u.text(16);
    records.emplace(record.id, std::move(record));
  }

  Statement s(db_, "SELECT use, device, memory, share, spill FROM slice ORDER BY use, position");
  while (s.row()) {
    const auto record = records.find(static_cast<uint64_t>(s.number(0)));
    const auto uuid = parse_uuid(s.text(1));
    if (!uuid) return failure(K::unavailable, "the ledger {} has an invalid device '{}'", path_, s.text(1));
    if (record != records.end())
      record->second.slice.parts.push_back({*uuid,
                                            {static_cast<uint64_t>(s.number(2))},
                                            {static_cast<uint32_t>(s.number(3))},
                                            {static_cast<uint64_t>(s.number(4))}});
  }
  Statement p(
      db_,
      "SELECT use, memory, share, policy, latency, isolation, to_utc, to_boot, to_mono FROM period ORDER "
      "BY use, position");
  while (p.row()) {
    const auto record = records.find(static_cast<uint64_t>(p.number(0)));
    if (record == records.end()) continue;
    const ledger::Terms terms{{static_cast<uint64_t>(p.number(1))},
                              {static_cast<uint32_t>(p.number(2))},
                              static_cast<Policy>(p.number(3)),
                              static_cast<LatencyClass>(p.number(4)),
                              static_cast<Isolation>(p.number(5))};
    if (!known(terms))
      return failure(K::unavailable, "the ledger {} has an unknown value in the terms of '{}'", path_,
                     record->second.slice.name);
    auto& before = record->second.periods;
    before.push_back({terms, {p.number(6), p.text(7), p.number(8)}});
    if (before.size() > Ledger::max_periods) before.erase(before.begin());
  }
  if (!d.done() || !u.done() || !s.done() || !p.done()) return trouble("reading");

  std::vector<Change> out;
  for (Device device : devices) {
    device.reserved = {};
    out.emplace_back(ledger::DeviceSeen{device});
  }
  for (auto& [id, record] : records) out.emplace_back(ledger::Granted{std::move(record)});
  for (const Device& device : devices) out.emplace_back(ledger::DeviceSeen{device});
  return out;
}

}  // namespace carve::node
