#include "node/store/sqlite_store.h"

#include <map>

namespace carve::node {
namespace {

using ledger::Change;
using ledger::Ledger;
using ledger::Stamp;
using ledger::UsageRecord;
using sqlite::Statement;

constexpr sqlite::Schema schema{
    "ledger", "--state", SqliteStore::schema_version,
    R"(CREATE TABLE device (uuid TEXT PRIMARY KEY, idx INTEGER, name TEXT, native INTEGER, reserved INTEGER) STRICT;
       CREATE TABLE use (id INTEGER PRIMARY KEY, name TEXT NOT NULL, request_id TEXT NOT NULL, owner INTEGER,
         exclusive INTEGER, persistent INTEGER, isolation INTEGER, policy INTEGER, latency INTEGER,
         from_utc INTEGER, from_boot TEXT, from_mono INTEGER,
         to_utc INTEGER, to_boot TEXT, to_mono INTEGER, why TEXT, application TEXT NOT NULL DEFAULT '') STRICT;
       CREATE TABLE slice (use INTEGER REFERENCES use(id), position INTEGER, device TEXT, memory INTEGER,
         share INTEGER, spill INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (use, position)) STRICT;
       CREATE TABLE period (use INTEGER REFERENCES use(id), position INTEGER, memory INTEGER, share INTEGER,
         policy INTEGER, latency INTEGER, isolation INTEGER, to_utc INTEGER, to_boot TEXT, to_mono INTEGER,
         PRIMARY KEY (use, position)) STRICT;
       CREATE UNIQUE INDEX living_name ON use(name) WHERE to_utc IS NULL;)"};

// Returns false for a number that this version has no word for, because another version wrote it.
bool known(const ledger::Terms& t) {
  return t.isolation <= Isolation::memory_and_compute && t.policy <= Policy::native_burst_share &&
         t.latency <= LatencyClass::latency;
}

int insert(sqlite3* db, const ledger::DeviceSeen& seen) {
  Statement s(db, "INSERT OR REPLACE INTO device VALUES (?, ?, ?, ?, ?)");
  const Device& d = seen.device;
  s << text(d.uuid) << d.index << d.name << static_cast<int64_t>(d.native.count)
    << static_cast<int64_t>(d.reserved.count);
  return s.finish();
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
  if (const int code = s.finish()) return code;
  int64_t position = 0;
  for (const SlicePart& part : u.slice.parts) {
    Statement row(db, "INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?)");
    row << static_cast<int64_t>(u.id) << position++ << text(part.device)
        << static_cast<int64_t>(part.memory.count) << part.share.basis_points
        << static_cast<int64_t>(part.spill.count);
    if (const int code = row.finish()) return code;
  }
  position = 0;
  for (const ledger::Period& was : u.periods) {  // Only when a lost ledger is rebuilt.
    Statement period(db, "INSERT INTO period VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    period << static_cast<int64_t>(u.id) << position++ << static_cast<int64_t>(was.terms.memory.count)
           << was.terms.share.basis_points << static_cast<int64_t>(was.terms.policy)
           << static_cast<int64_t>(was.terms.latency) << static_cast<int64_t>(was.terms.isolation)
           << was.to.utc_ns << was.to.boot_id << was.to.monotonic_ns;
    if (const int code = period.finish()) return code;
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
  if (const int code = was.finish()) return code;
  Statement record(db, "UPDATE use SET policy = ?, latency = ?, isolation = ? WHERE id = ?");
  record << static_cast<int64_t>(t.policy) << static_cast<int64_t>(t.latency)
         << static_cast<int64_t>(t.isolation) << id;
  if (const int code = record.finish()) return code;
  Statement slices(db, "UPDATE slice SET memory = ?, share = ? WHERE use = ?");
  slices << static_cast<int64_t>(t.memory.count) << t.share.basis_points << id;
  return slices.finish();
}

int insert(sqlite3* db, const ledger::Ended& ended) {
  Statement s(db, "UPDATE use SET to_utc = ?, to_boot = ?, to_mono = ?, why = ? WHERE id = ?");
  s << ended.when.utc_ns << ended.when.boot_id << ended.when.monotonic_ns << ended.why
    << static_cast<int64_t>(ended.id);
  return s.finish();
}

}  // namespace

Outcome<SqliteStore::Opened> SqliteStore::open(const std::string& path, int64_t now_s) {
  auto opened = sqlite::Database::open(path, schema, now_s);
  if (!opened) return tl::unexpected(opened.error());
  return Opened{std::unique_ptr<SqliteStore>(new SqliteStore(std::move(opened->database))),
                opened->moved_aside, opened->damage};
}

Outcome<void> SqliteStore::write(const Change& change) {
  return database_.transact(
      [&](sqlite3* db) { return std::visit([&](const auto& c) { return insert(db, c); }, change); });
}

Outcome<std::vector<Change>> SqliteStore::read() {
  std::vector<Device> devices;
  Statement d(database_.get(), "SELECT uuid, idx, name, native, reserved FROM device ORDER BY idx");
  while (d.row()) {
    const auto uuid = parse_uuid(d.text(0));
    if (!uuid) return database_.unknown_value(fmt::format("an invalid device \'{}\'", d.text(0)));
    devices.push_back({*uuid,
                       static_cast<unsigned>(d.number(1)),
                       d.text(2),
                       {static_cast<uint64_t>(d.number(3))},
                       {static_cast<uint64_t>(d.number(4))}});
  }

  std::map<uint64_t, UsageRecord> records;
  Statement u(
      database_.get(),
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
      return database_.unknown_value(fmt::format("an unknown value in the terms of '{}'", record.slice.name));
    record.from = {u.number(9), u.text(10), u.number(11)};
    if (!u.is_null(12)) record.to = Stamp{u.number(12), u.text(13), u.number(14)};
    record.end_reason = u.text(15);
    record.slice.application = u.text(16);
    records.emplace(record.id, std::move(record));
  }

  Statement s(database_.get(), "SELECT use, device, memory, share, spill FROM slice ORDER BY use, position");
  while (s.row()) {
    const auto record = records.find(static_cast<uint64_t>(s.number(0)));
    const auto uuid = parse_uuid(s.text(1));
    if (!uuid) return database_.unknown_value(fmt::format("an invalid device \'{}\'", s.text(1)));
    if (record != records.end())
      record->second.slice.parts.push_back({*uuid,
                                            {static_cast<uint64_t>(s.number(2))},
                                            {static_cast<uint32_t>(s.number(3))},
                                            {static_cast<uint64_t>(s.number(4))}});
  }
  Statement p(
      database_.get(),
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
      return database_.unknown_value(
          fmt::format("an unknown value in the terms of '{}'", record->second.slice.name));
    auto& before = record->second.periods;
    before.push_back({terms, {p.number(6), p.text(7), p.number(8)}});
    if (before.size() > Ledger::max_periods) before.erase(before.begin());
  }
  if (!d.done() || !u.done() || !s.done() || !p.done()) return database_.trouble("reading");

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
