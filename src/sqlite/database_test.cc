#include "sqlite/database.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace carve::sqlite {
namespace {

using testing::HasSubstr;

constexpr Schema schema{"store", "--state", 3,
                        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;"};

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-sqlite-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file() const { return path / "a.db"; }
};

Outcome<void> insert(Database& database, int64_t id, const std::string& name) {
  return database.transact([&](sqlite3* connection) {
    Statement s(connection, "INSERT INTO t VALUES (?, ?)");
    s << id << name;
    return s.finish();
  });
}

std::vector<std::string> names(const Database& database) {
  std::vector<std::string> out;
  Statement s = database.statement("SELECT name FROM t ORDER BY id");
  while (s.row()) out.push_back(s.text(0));
  EXPECT_TRUE(s.done());
  return out;
}

TEST(Database, reads_back_committed_data_byte_for_byte) {
  const Directory dir;
  const std::string odd = std::string("a\0b", 3) + "'; DROP TABLE t; --";
  {
    auto opened = Database::open(dir.file(), schema, 1);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(insert(opened->database, 1, odd));
    ASSERT_TRUE(insert(opened->database, 2, ""));
  }
  const auto opened = Database::open(dir.file(), schema, 1);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->moved_aside, "");
  EXPECT_THAT(names(opened->database), testing::ElementsAre(odd, ""));
  struct stat info {};
  ASSERT_EQ(stat(dir.file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Database, a_failed_transaction_changes_nothing_and_the_next_one_works) {
  const Directory dir;
  auto opened = Database::open(dir.file(), schema, 1);
  ASSERT_TRUE(insert(opened->database, 1, "a"));
  const auto twice = opened->database.transact([](sqlite3* connection) {
    Statement first(connection, "INSERT INTO t VALUES (2, 'b')");
    if (const int code = first.finish()) return code;
    Statement second(connection, "INSERT INTO t VALUES (1, 'c')");
    return second.finish();
  });
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("writing the store " + dir.file()));
  EXPECT_THAT(names(opened->database), testing::ElementsAre("a"));
  EXPECT_TRUE(insert(opened->database, 2, "d"));
}

TEST(Database, an_invalid_statement_has_no_rows_and_an_error) {
  const Directory dir;
  const auto opened = Database::open(dir.file(), schema, 1);
  Statement s = opened->database.statement("SELECT nothing FROM nowhere");
  s << 1 << "x";
  EXPECT_FALSE(s.row());
  EXPECT_EQ(s.finish(), SQLITE_ERROR);
}

TEST(Database, a_full_disk_is_reported) {
  const Directory dir;
  auto opened = Database::open(dir.file(), schema, 1);
  opened->database.limit_pages(1);
  Outcome<void> last;
  for (int i = 0; i < 1000 && last; ++i) last = insert(opened->database, i, std::string(400, 'x'));
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().kind, FailureKind::unavailable);
  EXPECT_THAT(last.error().message, HasSubstr("the disk is full"));
}

TEST(Database, rejects_another_version_and_suggests_the_option) {
  for (const int version : {2, 4}) {
    const Directory dir;
    { ASSERT_TRUE(Database::open(dir.file(), {"store", "--state", version, schema.script}, 1)); }
    const auto opened = Database::open(dir.file(), schema, 1);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message, HasSubstr(version > 3 ? "a newer carve" : "an older carve"));
    EXPECT_THAT(opened.error().message, HasSubstr("set another location with --state"));
  }
}

// The version before `schema`, in which the table had no name.
Schema upgrading() {
  return {.name = "store",
          .option = "--state",
          .version = 4,
          .script = "CREATE TABLE t (id INTEGER, name TEXT, label TEXT) STRICT;",
          .upgrades = {"ALTER TABLE t ADD COLUMN label TEXT"}};
}

TEST(Database, upgrades_a_file_of_the_previous_version_once) {
  const Directory dir;
  {
    auto opened = Database::open(
        dir.file(), {"store", "--state", 3, "CREATE TABLE t (id INTEGER, name TEXT) STRICT;"}, 1);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(insert(opened->database, 7, "seven"));
  }
  for (int i = 0; i < 2; ++i) {
    auto opened = Database::open(dir.file(), upgrading(), 1);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, "");
    Statement s(opened->database.get(), "SELECT id, name, label FROM t");
    ASSERT_TRUE(s.row());
    EXPECT_EQ(s.number(0), 7);
    EXPECT_EQ(s.text(1), "seven");
    EXPECT_EQ(s.text(2), "");
  }
}

TEST(Database, a_file_of_the_previous_version_with_other_tables_is_damaged) {
  for (const char* tables :
       {"CREATE TABLE other (id INTEGER) STRICT;", "CREATE TABLE t (id INTEGER, nbme TEXT) STRICT;"}) {
    const Directory dir;
    { ASSERT_TRUE(Database::open(dir.file(), {"store", "--state", 3, tables}, 1)); }
    const auto opened = Database::open(dir.file(), upgrading(), 2);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, dir.file() + ".corrupt-2");
    EXPECT_THAT(opened->damage, HasSubstr("its tables are not those of schema"));
  }
}

TEST(Database, damaged_files_are_moved_aside_and_kept) {
  for (const size_t size : {1000ul, 8192ul, 100'000ul}) {
    const Directory dir;
    std::ofstream(dir.file()) << std::string(size, 'x');
    auto opened = Database::open(dir.file(), schema, 77);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, dir.file() + ".corrupt-77") << size;
    EXPECT_NE(opened->damage, "");
    EXPECT_EQ(std::filesystem::file_size(opened->moved_aside), size);
    EXPECT_TRUE(insert(opened->database, 1, "a"));
  }
}

TEST(Database, detects_text_that_is_not_utf8) {
  for (const char* good : {"", "a", "\x7f", "\u00e4", "\u20ac", "\U0001f600", "\u07ff", "\uffff"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* wrong : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xed\xa0\x80",
                            "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_FALSE(is_utf8(wrong));
}

// A damaged page may still be a valid page.
TEST(Database, tables_other_than_those_of_the_schema_are_damage) {
  const Directory dir;
  { ASSERT_TRUE(Database::open(dir.file(), schema, 1)); }
  {
    auto sound = Database::open(dir.file(), schema, 1);
    ASSERT_TRUE(sound);
    EXPECT_EQ(sound->moved_aside, "");
    ASSERT_TRUE(sound->database.execute("ALTER TABLE t RENAME COLUMN name TO nbme"));
  }
  const auto moved = Database::open(dir.file(), schema, 2);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->moved_aside, dir.file() + ".corrupt-2");
  EXPECT_THAT(moved->damage, HasSubstr("its tables are not those of schema 3"));
}

TEST(Database, a_missing_directory_is_reported) {
  const auto opened = Database::open("/nowhere/at/all/a.db", schema, 1);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("/nowhere/at/all/a.db"));
}

}  // namespace
}  // namespace carve::sqlite
