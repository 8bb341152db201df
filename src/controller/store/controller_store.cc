#include "controller/store/controller_store.h"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "controller/objects/kind_table.h"
#include "controller/store/object_columns.h"
#include "sqlite/rows.h"

namespace carve::controller {
namespace {

namespace rows = sqlite::rows;
using sqlite::Statement;

// The name of a record's table, and the columns that identify a row.
template <class Record>
struct Table;
template <>
struct Table<NodeRecord> {
  static constexpr const char *name = "node", *key = "name";
};
template <>
struct Table<Object> {
  static constexpr const char *name = "object", *key = "kind, name_space, name";
};
template <>
struct Table<WorkloadRecord> {
  static constexpr const char *name = "workload", *key = "uid";
};
template <>
struct Table<RevisionRecord> {
  static constexpr const char *name = "revision", *key = "uid, revision";
};
template <>
struct Table<ReplicaRecord> {
  static constexpr const char *name = "replica", *key = "slice";
};
template <>
struct Table<JobRecord> {
  static constexpr const char *name = "job", *key = "uid";
};
template <>
struct Table<PodRecord> {
  static constexpr const char *name = "pod", *key = "program";
};
template <>
struct Table<Token> {
  static constexpr const char *name = "token", *key = "name";
};
template <>
struct Table<Session> {
  static constexpr const char *name = "session", *key = "name";
};
template <>
struct Table<KeptEvent> {
  static constexpr const char *name = "event", *key = "kind, name_space, name, uid, reason";
};
template <>
struct Table<KeptAnswer> {
  static constexpr const char *name = "answer", *key = "caller, key";
};

// A table has one column for each field of its struct.
template <class Record>
std::string creation() {
  return fmt::format("CREATE TABLE {} ({}, PRIMARY KEY ({})) STRICT;", Table<Record>::name,
                     rows::declarations<Record>(), Table<Record>::key);
}

const std::string& script() {
  static const std::string text =
      creation<NodeRecord>() + creation<Object>() + creation<WorkloadRecord>() + creation<RevisionRecord>() +
      creation<ReplicaRecord>() + creation<JobRecord>() + creation<PodRecord>() + creation<Token>() +
      creation<Session>() + creation<KeptEvent>() + creation<KeptAnswer>() +
      fmt::format("CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, {}) STRICT;",
                  rows::declarations<AuditRecord>()) +
      "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER) STRICT;"
      "INSERT INTO counter VALUES ('version', 0);";
  return text;
}

template <class Record>
int insert(sqlite3* db, const char* table, const Record& record) {
  const auto columns = rows::columns<Record>();
  Statement s(db, fmt::format("INSERT OR REPLACE INTO {} ({}) VALUES ({})", table, fmt::join(columns, ", "),
                              fmt::join(std::vector<std::string>(columns.size(), "?"), ", "))
                      .c_str());
  rows::bind(s, record);
  return s.finish();
}

template <class Record>
int insert(sqlite3* db, const Record& record) {
  return insert(db, Table<Record>::name, record);
}

template <class... Values>
int run(sqlite3* db, const char* sql, const Values&... values) {
  Statement s(db, sql);
  (s << ... << values);
  return s.finish();
}

int set_version(sqlite3* db, uint64_t version) {
  return run(db, "UPDATE counter SET value = ? WHERE name = 'version'", version);
}

// Runs the steps up to the first error and returns it.
int first_error(std::initializer_list<std::function<int()>> steps) {
  for (const auto& step : steps)
    if (const int code = step()) return code;
  return SQLITE_OK;
}

}  // namespace

namespace {

// Schema 6 had events without the uid of their object.
const std::string& upgrade_of_6() {
  static const std::string text =
      "ALTER TABLE event RENAME TO old_event;"
      "CREATE TABLE event (\"kind\" TEXT, \"name_space\" TEXT, \"name\" TEXT, \"uid\" TEXT, \"reason\" TEXT, "
      "\"message\" TEXT, \"count\" INTEGER, \"first_ns\" INTEGER, \"last_ns\" INTEGER, PRIMARY KEY (kind, "
      "name_space, name, uid, reason)) STRICT;"
      "INSERT INTO event (kind, name_space, name, uid, reason, message, count, first_ns, last_ns) "
      "SELECT kind, name_space, name, '', reason, message, count, first_ns, last_ns FROM old_event;"
      "DROP TABLE old_event;";
  return text;
}

// Schema 7 had no sessions.
const std::string& upgrade_of_7() {
  static const std::string text = creation<Session>();
  return text;
}

// Schema 8 had events without a caller.
constexpr const char* upgrade_of_8 = "ALTER TABLE event ADD COLUMN \"caller\" TEXT";

sqlite::Schema schema() {
  return {.name = "controller database",
          .option = "--state",
          .version = ControllerStore::schema_version,
          .script = script().c_str(),
          .upgrades = {upgrade_of_6().c_str(), upgrade_of_7().c_str(), upgrade_of_8}};
}

}  // namespace

Outcome<std::string> ControllerStore::move_aside(const std::string& path, int64_t now_s,
                                                 const std::string& damage) {
  return sqlite::Database::move_aside(path, schema(), now_s, damage);
}

Outcome<ControllerStore::Opened> ControllerStore::open(const std::string& path, int64_t now_s) {
  auto opened = sqlite::Database::open(path, schema(), now_s);
  if (!opened) return tl::unexpected(opened.error());
  return Opened{.store = ControllerStore(std::move(opened->database)),
                .moved_aside = std::move(opened->moved_aside),
                .damage = std::move(opened->damage)};
}

template <class Write>
Outcome<void> ControllerStore::transact(Write write) {
  const os::MutexLock lock(*mutex_);
  return database_.transact(std::move(write));
}

void ControllerStore::limit_pages(int64_t pages) {
  const os::MutexLock lock(*mutex_);
  database_.limit_pages(pages);
}

namespace {

template <class Record>
void finish(Record&) {}
void finish(Object& object) {
  const KindRow& row = row_of(object.key.kind);
  object.spec = row.read_spec(object.spec.json());
  object.status = row.read_status(object.status.json());
}

}  // namespace

template <class Record, class... Values>
Outcome<std::vector<Record>> ControllerStore::select(const char* where, const Values&... values) {
  std::vector<Record> out;
  const os::MutexLock lock(*mutex_);
  Statement s = database_.statement(fmt::format("SELECT {} FROM {} {} ORDER BY {}",
                                                fmt::join(rows::columns<Record>(), ", "), Table<Record>::name,
                                                where, Table<Record>::key)
                                        .c_str());
  [[maybe_unused]] Statement& bound = (s << ... << values);
  while (s.row()) {
    int column = 0;
    std::string wrong;
    if (rows::read(s, column, out.emplace_back(), wrong)) {
      finish(out.back());
      continue;
    }
    if (!std::is_same_v<Record, KeptEvent> || !sqlite::is_utf8(wrong))
      return database_.unknown_value(fmt::format("an invalid {} '{}'", Table<Record>::name, wrong));
    out.pop_back();  // Another version has more kinds of events.
  }
  if (!s.done()) return database_.trouble("reading");
  return out;
}
template <class Record>
Outcome<std::vector<Record>> ControllerStore::all() {
  return select<Record>("");
}
template Outcome<std::vector<NodeRecord>> ControllerStore::all();
template Outcome<std::vector<Object>> ControllerStore::all();
template Outcome<std::vector<WorkloadRecord>> ControllerStore::all();
template Outcome<std::vector<RevisionRecord>> ControllerStore::all();
template Outcome<std::vector<ReplicaRecord>> ControllerStore::all();
template Outcome<std::vector<JobRecord>> ControllerStore::all();
template Outcome<std::vector<PodRecord>> ControllerStore::all();
template Outcome<std::vector<Token>> ControllerStore::all();
template Outcome<std::vector<Session>> ControllerStore::all();
template Outcome<std::vector<KeptEvent>> ControllerStore::all();

template <>
Outcome<std::vector<AuditRecord>> ControllerStore::all() {
  return newest_audit(max_audit_records);
}

Outcome<std::vector<AuditRecord>> ControllerStore::newest_audit(size_t most) {
  std::vector<AuditRecord> out;
  const os::MutexLock lock(*mutex_);
  Statement s = database_.statement(
      fmt::format("SELECT {} FROM (SELECT * FROM audit ORDER BY id DESC LIMIT {}) ORDER BY id",
                  fmt::join(rows::columns<AuditRecord>(), ", "), most)
          .c_str());
  while (s.row()) {
    int column = 0;
    std::string wrong;
    rows::read(s, column, out.emplace_back(), wrong);
  }
  if (!s.done()) return database_.trouble("reading");
  return out;
}

Outcome<std::vector<RevisionRecord>> ControllerStore::revisions(const std::string& uid) {
  return select<RevisionRecord>("WHERE uid = ?", uid);
}

Outcome<void> ControllerStore::write(const std::vector<NodeRecord>& nodes) {
  return transact([&](sqlite3* db) {
    for (const NodeRecord& node : nodes)
      if (const int code = insert(db, node)) return code;
    return SQLITE_OK;
  });
}

Outcome<void> ControllerStore::write(std::span<const Object> objects) {
  return transact([&](sqlite3* db) {
    for (const Object& object : objects)
      if (const int code = first_error(
              {[&] { return insert(db, object); }, [&] { return set_version(db, object.version); }}))
        return code;
    return SQLITE_OK;
  });
}

Outcome<void> ControllerStore::remove(const ObjectKey& key, uint64_t version) {
  const std::string kind(objects::text_of(key.kind).kind);
  const auto objects =
      select<Object>("WHERE kind = ? AND name_space = ? AND name = ?", kind, key.namespace_, key.name);
  if (!objects) return tl::unexpected(objects.error());
  if (objects->empty()) return {};
  const std::string& uid = objects->front().uid;
  return transact([&](sqlite3* db) {
    return first_error({
        [&] {
          return run(db, "DELETE FROM object WHERE kind = ? AND name_space = ? AND name = ?", kind,
                     key.namespace_, key.name);
        },
        [&] { return run(db, "DELETE FROM workload WHERE uid = ?", uid); },
        [&] { return run(db, "DELETE FROM revision WHERE uid = ?", uid); },
        [&] { return run(db, "DELETE FROM replica WHERE uid = ?", uid); },
        [&] { return run(db, "DELETE FROM job WHERE uid = ?", uid); },
        [&] { return run(db, "DELETE FROM pod WHERE uid = ?", uid); },
        [&] { return set_version(db, version); },
    });
  });
}

Outcome<void> ControllerStore::write(const WorkloadRecord& workload, const RevisionRecord& revision,
                                     unsigned kept) {
  return transact([&](sqlite3* db) {
    return first_error({
        [&] { return insert(db, workload); },
        [&] { return insert(db, revision); },
        [&] {
          return run(db,
                     "DELETE FROM revision WHERE uid = ? AND revision NOT IN (SELECT revision FROM revision "
                     "WHERE uid = ? ORDER BY revision DESC LIMIT ?) AND revision NOT IN (SELECT revision "
                     "FROM replica WHERE uid = ?)",
                     revision.uid, revision.uid, kept, revision.uid);
        },
    });
  });
}

Outcome<void> ControllerStore::write(const WorkloadRecord& workload) {
  return transact([&](sqlite3* db) { return insert(db, workload); });
}

Outcome<void> ControllerStore::write(const ReplicaRecord& replica) {
  return transact([&](sqlite3* db) { return insert(db, replica); });
}

Outcome<void> ControllerStore::remove(const ReplicaRecord& replica) {
  return transact([&](sqlite3* db) { return run(db, "DELETE FROM replica WHERE slice = ?", replica.slice); });
}

Outcome<void> ControllerStore::write(const JobRecord& job) {
  return transact([&](sqlite3* db) { return insert(db, job); });
}

Outcome<void> ControllerStore::write(const PodRecord& pod) {
  return transact([&](sqlite3* db) { return insert(db, pod); });
}

Outcome<void> ControllerStore::remove(const PodRecord& pod) {
  return transact([&](sqlite3* db) { return run(db, "DELETE FROM pod WHERE program = ?", pod.program); });
}

Outcome<void> ControllerStore::write(const Token& token) {
  return transact([&](sqlite3* db) { return insert(db, token); });
}

Outcome<void> ControllerStore::remove(const Token& token) {
  return transact([&](sqlite3* db) { return run(db, "DELETE FROM token WHERE name = ?", token.name); });
}

Outcome<void> ControllerStore::write(const Session& session) {
  return transact([&](sqlite3* db) { return insert(db, session); });
}

Outcome<void> ControllerStore::remove(const Session& session) {
  return transact([&](sqlite3* db) { return run(db, "DELETE FROM session WHERE name = ?", session.name); });
}

Outcome<void> ControllerStore::write(std::span<const KeptEvent> events, std::span<const EventKey> removed) {
  return transact([&](sqlite3* db) {
    for (const KeptEvent& event : events)
      if (const int code = insert(db, event)) return code;
    for (const EventKey& key : removed)
      if (const int code = run(
              db,
              "DELETE FROM event WHERE kind = ? AND name_space = ? AND name = ? AND uid = ? AND reason = ?",
              std::string(objects::text_of(key.object.kind).kind), key.object.namespace_, key.object.name,
              key.uid, std::string(carve::text(key.reason))))
        return code;
    return SQLITE_OK;
  });
}

namespace {

constexpr std::string_view within_slice = " in slice ";  // As in http::Caller::text().

// Returns the caller without the slice, because one user can be in any number of slices.
std::string without_slice(const std::string& caller) { return caller.substr(0, caller.find(within_slice)); }

}  // namespace

Outcome<void> ControllerStore::count_audit() {
  std::map<std::string, AuditShare> shares;
  size_t all = 0;
  Statement s = database_.statement("SELECT caller, count(*), min(id) FROM audit GROUP BY caller");
  while (s.row()) {
    const auto records = static_cast<size_t>(s.number(1));
    AuditShare& share = shares[without_slice(s.text(0))];
    share.first_id = share.records == 0 ? s.number(2) : std::min(share.first_id, s.number(2));
    share.records += records;
    all += records;
  }
  if (!s.done()) return database_.trouble("reading");
  audit_shares_ = std::move(shares);
  audit_records_ = all;
  return {};
}

void ControllerStore::limit_audit(size_t records) {
  const os::MutexLock lock(*mutex_);
  max_audit_ = records;
}

std::string ControllerStore::audit_yielder(const std::string& caller) {
  if (*audit_records_ < max_audit_) return "";
  std::string out = caller;
  const auto own = audit_shares_.find(caller);
  size_t most = (own == audit_shares_.end() ? 0 : own->second.records) + 1;
  for (const auto& [name, share] : audit_shares_) {
    const bool has_reserve = name == "root" && share.records <= max_audit_ / 4;
    if (has_reserve || share.records < most) continue;
    out = name;
    most = share.records;
  }
  return out;
}

Outcome<void> ControllerStore::append(const AuditRecord& line) {
  const os::MutexLock lock(*mutex_);
  if (!audit_records_)
    if (const auto counted = count_audit(); !counted) return counted;
  const std::string caller = without_slice(line.caller);
  const std::string yielder = audit_yielder(caller);
  const int64_t first_id = yielder.empty() ? 0 : audit_shares_[yielder].first_id;
  int64_t added = 0, deleted = 0;
  const auto written = database_.transact([&](sqlite3* db) {
    if (const int code = insert(db, "audit", line)) return code;
    added = sqlite3_last_insert_rowid(db);
    if (yielder.empty()) return SQLITE_OK;
    const std::string prefix = yielder + std::string(within_slice);
    Statement oldest(db,
                     "SELECT id FROM audit WHERE id >= ? AND (caller = ? OR substr(caller, 1, ?) = ?) "
                     "ORDER BY id LIMIT 1");
    oldest << first_id << yielder << prefix.size() << prefix;
    if (oldest.row()) deleted = oldest.number(0);
    if (const int code = oldest.finish()) return code;
    return run(db, "DELETE FROM audit WHERE id = ?", deleted);
  });
  if (!written) return written;
  AuditShare& own = audit_shares_[caller];
  if (own.records++ == 0) own.first_id = added;
  ++*audit_records_;
  if (deleted == 0) return {};
  AuditShare& share = audit_shares_[yielder];
  share.first_id = deleted + 1;
  --*audit_records_;
  if (--share.records == 0) audit_shares_.erase(yielder);
  return {};
}

Outcome<void> ControllerStore::write(const KeptAnswer& answer, int64_t oldest_ns, size_t kept) {
  return transact([&](sqlite3* db) {
    return first_error({
        [&] { return insert(db, answer); },
        [&] { return run(db, "DELETE FROM answer WHERE at_ns < ?", oldest_ns); },
        [&] {
          // Only one answer was added, so at most one is too many.
          return run(
              db,
              "DELETE FROM answer WHERE (SELECT count(*) FROM answer) > ? AND rowid = (SELECT rowid "
              "FROM answer WHERE caller = (SELECT caller FROM answer GROUP BY caller ORDER BY count(*) "
              "DESC, caller LIMIT 1) ORDER BY at_ns, rowid LIMIT 1)",
              kept);
        },
    });
  });
}

Outcome<std::optional<KeptAnswer>> ControllerStore::find(const std::string& caller, const std::string& key) {
  auto answers = select<KeptAnswer>("WHERE caller = ? AND key = ?", caller, key);
  if (!answers) return tl::unexpected(answers.error());
  return answers->empty() ? std::nullopt : std::optional(std::move(answers->front()));
}

Outcome<uint64_t> ControllerStore::version() {
  const os::MutexLock lock(*mutex_);
  Statement s = database_.statement("SELECT value FROM counter WHERE name = 'version'");
  if (!s.row()) return database_.trouble("reading");
  return static_cast<uint64_t>(s.number(0));
}

}  // namespace carve::controller
