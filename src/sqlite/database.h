// A SQLite file: its connection, statements, transactions and schema version, and the detection of damage.
// The file is in WAL mode, and each transaction is synced (about 1 ms), so a committed change survives a
// power failure.
//
// A file contains the version of its schema. One script creates a new file. A file of an earlier version is
// upgraded if the schema has upgrade scripts for it; a file of any other version is rejected and stays unchanged.
// A damaged file is moved aside, never deleted: `<path>.corrupt-<UTC seconds>`.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve::sqlite {

// Whether several threads use the connection, or only one. In the second case, SQLite takes no lock for each
// value that is read.
enum class Users : uint8_t { several_threads, one_thread };

// The contents of a file, for its creation and for messages about it.
struct Schema {
  const char* name;    // "ledger": the user's name for the file.
  const char* option;  // "--state": the option that names another place.
  int version;         // PRAGMA user_version.
  const char* script;  // Creates the tables of a new file.
  Users users = Users::several_threads;
  // Each converts the tables of one version to the next; the last one converts those of `version` - 1.
  std::vector<const char*> upgrades = {};
};

// Returns whether the text is UTF-8. A text in a damaged page may not be UTF-8, which a document cannot
// contain.
bool is_utf8(std::string_view text);

// Bytes that are bound as a BLOB. Must exist until the statement has been stepped.
struct Blob {
  std::string_view bytes;
};

// A prepared statement: bind the values in order, then step. An error is kept and returned by finish().
class Statement {
 public:
  Statement(sqlite3* connection, const char* sql);
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& operator<<(const std::string& text);
  Statement& operator<<(Blob blob);
  template <std::integral T>
  Statement& operator<<(T number) {
    bind(static_cast<int64_t>(number));
    return *this;
  }

  void bind_null();
  // Prepares the statement for other values, after an error too.
  Statement& restart();

  // Steps. Returns true if there is a row. The columns are those of the current row, counted from 0.
  bool row();
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;  // Also for a BLOB.

  bool done() { return !row() && code_ == SQLITE_DONE; }
  // Steps to the end. Returns SQLITE_OK or the error's code. The connection forgets its error at the next
  // statement.
  int finish() { return done() ? SQLITE_OK : code_; }

 private:
  void bind(int64_t number);
  bool good() const { return code_ == SQLITE_OK || code_ == SQLITE_ROW; }
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  int bound_ = 0;
};

class Database {
 public:
  struct Opened;
  // Opens or creates the file, readable only by its owner. `now_s` is used in a damaged file's new name.
  // Fails if permission is missing, the disk is full, or the file has another schema version.
  static Outcome<Opened> open(const std::string& path, const Schema& schema, int64_t now_s);

  // Moves the files of a database aside, which must not be open. Returns the new path.
  static Outcome<std::string> move_aside(const std::string& path, const Schema& schema, int64_t now_s,
                                         const std::string& damage);

  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

  sqlite3* get() const { return connection_.get(); }
  const std::string& path() const { return path_; }
  Statement statement(const char* sql) const { return {get(), sql}; }

  // Executes one or several SQL commands without values. Returns false on an error.
  bool execute(const char* sql) const;
  // Runs `write` in one transaction. `write` returns SQLITE_OK or an error's code. After an error nothing has
  // changed, and the failure contains the file and the reason.
  template <class Write>
  Outcome<void> transact(Write write) {
    if (!execute("BEGIN IMMEDIATE")) return trouble("writing");
    if (const int code = write(get()); code != SQLITE_OK) {
      auto failed = trouble("writing", code);
      execute("ROLLBACK");
      return failed;
    }
    if (execute("COMMIT")) return {};
    auto failed = trouble("writing");
    execute("ROLLBACK");
    return failed;
  }

  // Returns the failure of the operation `doing` ("reading") with `code`, or with the connection's last
  // error. Damage is reported as failed_precondition.
  tl::unexpected<Failure> trouble(const char* doing, int code = SQLITE_OK) const;
  // Returns the failure for a value in the file that this version does not support: failed_precondition.
  tl::unexpected<Failure> unknown_value(const std::string& what) const;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages);

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close(connection); }
  };
  Database(sqlite3* connection, std::string path, const Schema& schema)
      : connection_(connection), path_(std::move(path)), schema_(schema) {}
  Outcome<void> prepare();
  Outcome<void> check_tables(int64_t version) const;
  Outcome<void> upgrade(int64_t version);

  std::unique_ptr<sqlite3, Close> connection_;
  std::string path_;
  Schema schema_;
};

struct Database::Opened {
  Database database;
  std::string moved_aside;  // New path of a damaged file; empty if it was intact or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::sqlite
