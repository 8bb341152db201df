#include "sqlite/copy.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "os/fd.h"
#include "sqlite/database.h"

namespace carve::sqlite {
namespace {

constexpr int busy_patience_ms = 10'000;

struct Close {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
using Connection = std::unique_ptr<sqlite3, Close>;

Connection connect(const std::string& path, int flags) {
  sqlite3* connection = nullptr;
  sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  if (connection != nullptr) sqlite3_busy_timeout(connection, busy_patience_ms);
  return Connection(connection);
}

bool is_damage(int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }

tl::unexpected<Failure> trouble(const std::string& path, int code) {
  return failure(is_damage(code) ? FailureKind::failed_precondition : FailureKind::unavailable, "{}: {}",
                 path, is_damage(code) ? "the database is damaged" : sqlite3_errstr(code));
}

// Copies all pages in one step, so that they belong to one transaction.
Outcome<void> copy_pages(const std::string& from, const std::string& to) {
  const Connection source = connect(from, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW);
  if (const int code = sqlite3_errcode(source.get()); code != SQLITE_OK) return trouble(from, code);
  const Connection target = connect(to, SQLITE_OPEN_READWRITE);
  if (const int code = sqlite3_errcode(target.get()); code != SQLITE_OK) return trouble(to, code);
  sqlite3_backup* const copying = sqlite3_backup_init(target.get(), "main", source.get(), "main");
  if (copying == nullptr) return trouble(to, sqlite3_errcode(target.get()));
  const int stepped = sqlite3_backup_step(copying, -1);
  const int finished = sqlite3_backup_finish(copying);
  // An error of reading or writing does not say which of the files has it.
  if (stepped != SQLITE_DONE)
    return trouble(is_damage(stepped) ? from : fmt::format("{} to {}", from, to), stepped);
  if (finished != SQLITE_OK) return trouble(to, finished);
  // The file is in WAL mode like its source. Without this change, the check would create a second file.
  Statement journal(target.get(), "PRAGMA journal_mode = DELETE");
  if (!journal.row() || journal.text(0) != "delete") return trouble(to, sqlite3_errcode(target.get()));
  Statement check(target.get(), "PRAGMA integrity_check(1)");
  if (!check.row()) return trouble(from, sqlite3_errcode(target.get()));
  if (check.text(0) != "ok") return trouble(from, SQLITE_CORRUPT);
  return {};
}

}  // namespace

Outcome<void> copy_database(const std::string& from, const std::string& to) {
  // An empty file is a valid database of SQLite, but none of Carve's.
  const os::Fd created(open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!created) return failure(FailureKind::unavailable, "{}: {}", to, std::strerror(errno));
  if (auto copied = copy_pages(from, to); !copied) {
    unlink(to.c_str());
    return copied;
  }
  if (fsync(created.get()) == 0) return {};
  const int error = errno;
  unlink(to.c_str());
  return failure(FailureKind::unavailable, "{}: {}", to, std::strerror(error));
}

}  // namespace carve::sqlite
