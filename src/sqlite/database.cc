#include "sqlite/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

namespace carve::sqlite {

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() - at < length) return false;
    uint32_t point = length == 1 ? first : first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      if ((next & 0xc0) != 0x80) return false;
      point = (point << 6) | (next & 0x3f);
    }
    if ((length == 3 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) ||
        (length == 4 && (point < 0x10000 || point > 0x10ffff)))
      return false;
    at += length;
  }
  return true;
}

namespace {

// Returns the text for a message. Data from a damaged file may contain any bytes.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace

Statement::Statement(sqlite3* connection, const char* sql) {
  code_ = sqlite3_prepare_v2(connection, sql, -1, &statement_, nullptr);
}

Statement& Statement::operator<<(const std::string& text) {
  if (good())
    code_ =
        sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::operator<<(Blob blob) {
  if (good())
    code_ = sqlite3_bind_blob64(statement_, ++bound_, blob.bytes.data(), blob.bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::restart() {
  sqlite3_reset(statement_);
  bound_ = 0;
  if (statement_ != nullptr) code_ = SQLITE_OK;
  return *this;
}

void Statement::bind(int64_t number) {
  if (good()) code_ = sqlite3_bind_int64(statement_, ++bound_, number);
}

void Statement::bind_null() {
  if (good()) code_ = sqlite3_bind_null(statement_, ++bound_);
}

bool Statement::row() {
  if (good()) code_ = sqlite3_step(statement_);
  return code_ == SQLITE_ROW;
}

std::string Statement::text(int column) const {
  const auto* characters = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (characters == nullptr) return "";
  return {characters, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Database::execute(const char* sql) const {
  return sqlite3_exec(get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

void Database::limit_pages(int64_t pages) {
  execute(fmt::format("PRAGMA max_page_count = {}", pages).c_str());
}

tl::unexpected<Failure> Database::trouble(const char* doing, int code) const {
  const std::string what = fmt::format("{} the {} {}", doing, schema_.name, path_);
  switch (code != SQLITE_OK ? code : sqlite3_errcode(get())) {
    case SQLITE_FULL:
      return failure(FailureKind::unavailable,
                     "{}: the disk is full and nothing was changed; free some space there", what);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return failure(FailureKind::unavailable,
                     "{}: the file cannot be opened for writing; check its permissions", what);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return failure(FailureKind::failed_precondition, "{}: the file is damaged", what);
    default:
      return failure(FailureKind::unavailable, "{}: {}", what,
                     printable(code != SQLITE_OK ? sqlite3_errstr(code) : sqlite3_errmsg(get())));
  }
}

tl::unexpected<Failure> Database::unknown_value(const std::string& what) const {
  return failure(FailureKind::failed_precondition, "the {} {} has {}", schema_.name, path_, printable(what));
}

namespace {

// Returns the commands that created the tables and indexes.
std::vector<std::string> tables_of(sqlite3* connection) {
  std::vector<std::string> out;
  Statement s(connection, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql");
  while (s.row()) out.push_back(s.text(0));
  return out;
}

std::vector<std::string> tables_of_script(const char* script) {
  sqlite3* memory = nullptr;
  std::vector<std::string> out;
  if (sqlite3_open(":memory:", &memory) == SQLITE_OK &&
      sqlite3_exec(memory, script, nullptr, nullptr, nullptr) == SQLITE_OK)
    out = tables_of(memory);
  sqlite3_close(memory);
  return out;
}

}  // namespace

// Creates the tables of a new file. If the file is damaged, the connection's error is SQLITE_CORRUPT or
// SQLITE_NOTADB, or the failure's kind is failed_precondition.
Outcome<void> Database::prepare() {
  sqlite3_busy_timeout(get(), 2000);
  if (!execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON"))
    return trouble("opening");
  {
    Statement check(get(), "PRAGMA quick_check(1)");
    if (!check.row()) return trouble("opening");
    if (check.text(0) != "ok")
      return failure(FailureKind::failed_precondition, "{}", printable(check.text(0)));
  }
  int64_t version = 0;
  {
    Statement s(get(), "PRAGMA user_version");
    if (!s.row()) return trouble("opening");
    version = s.number(0);
  }
  if (version == schema_.version) return check_tables(version);
  const int64_t steps = schema_.version - version;
  if (version != 0 && steps > 0 && steps <= static_cast<int64_t>(schema_.upgrades.size()))
    return upgrade(version);
  if (version != 0)
    return failure(FailureKind::unavailable,
                   "the {} {} was written by {} carve (schema {}; this one uses {}); use that carve, or set "
                   "another location with {}",
                   schema_.name, path_, version > schema_.version ? "a newer" : "an older", version,
                   schema_.version, schema_.option);
  return transact([this](sqlite3*) {
    const bool made =
        execute(schema_.script) && execute(fmt::format("PRAGMA user_version = {}", schema_.version).c_str());
    return made ? SQLITE_OK : sqlite3_errcode(get());
  });
}

Outcome<void> Database::check_tables(int64_t version) const {
  if (tables_of(get()) == tables_of_script(schema_.script)) return {};
  return failure(FailureKind::failed_precondition, "its tables are not those of schema {}", version);
}

// Upgrades the file in one transaction, so that a crash leaves the older file.
Outcome<void> Database::upgrade(int64_t version) {
  std::optional<Failure> other_tables;
  const auto done = transact([&](sqlite3*) {
    int code = SQLITE_OK;
    for (auto script = schema_.upgrades.end() - (schema_.version - version);
         code == SQLITE_OK && script != schema_.upgrades.end(); ++script)
      if (!execute(*script)) code = sqlite3_errcode(get());
    // The scripts use the tables and columns of the file's version; a file that lacks them is damaged.
    const auto known = code == SQLITE_OK ? check_tables(schema_.version)
                                         : failure(FailureKind::failed_precondition,
                                                   "its tables are not those of schema {}", version);
    if (!known && (code == SQLITE_OK || code == SQLITE_ERROR)) {
      other_tables = known.error();
      return SQLITE_ERROR;
    }
    if (code != SQLITE_OK) return code;
    return execute(fmt::format("PRAGMA user_version = {}", schema_.version).c_str()) ? SQLITE_OK
                                                                                     : sqlite3_errcode(get());
  });
  return other_tables ? tl::unexpected(*other_tables) : done;
}

Outcome<Database::Opened> Database::open(const std::string& path, const Schema& schema, int64_t now_s) {
  std::string moved_aside, damage;
  for (;;) {
    // SQLite gives its two other files the mode of this file.
    if (const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); file >= 0) ::close(file);
    chmod(path.c_str(), 0600);
    sqlite3* connection = nullptr;
    const int locks = schema.users == Users::one_thread ? SQLITE_OPEN_NOMUTEX : SQLITE_OPEN_FULLMUTEX;
    const int code = sqlite3_open_v2(path.c_str(), &connection,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | locks, nullptr);
    std::optional<Database> database(Database(connection, path, schema));
    if (code != SQLITE_OK) return database->trouble("opening");
    const auto ready = database->prepare();
    if (ready) return Opened{std::move(*database), moved_aside, damage};
    const int reason = sqlite3_errcode(connection);
    const bool damaged = reason == SQLITE_CORRUPT || reason == SQLITE_NOTADB ||
                         ready.error().kind == FailureKind::failed_precondition;
    if (!damaged || !moved_aside.empty()) return tl::unexpected(ready.error());
    database.reset();
    damage = ready.error().message;
    auto moved = move_aside(path, schema, now_s, damage);
    if (!moved) return tl::unexpected(moved.error());
    moved_aside = std::move(*moved);
  }
}

Outcome<std::string> Database::move_aside(const std::string& path, const Schema& schema, int64_t now_s,
                                          const std::string& damage) {
  std::string aside = fmt::format("{}.corrupt-{}", path, now_s);
  for (const char* part : {"", "-wal", "-shm"})
    if (std::rename((path + part).c_str(), (aside + part).c_str()) != 0 && *part == '\0')
      return failure(FailureKind::unavailable, "the {} {} is damaged ({}) and cannot be moved away: {}",
                     schema.name, path, damage, strerror(errno));
  return aside;
}

}  // namespace carve::sqlite
