#include "sqlite/copy.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sqlite/database.h"

namespace carve::sqlite {
namespace {

using testing::HasSubstr;

// Each transaction adds the same amount to both rows.
constexpr Schema pairs{
    "store", "--state", 1,
    "CREATE TABLE t (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, text TEXT NOT NULL) STRICT;"};

class CopyTest : public testing::Test {
 protected:
  CopyTest() {
    char name[] = "/tmp/carve-copy-XXXXXX";
    folder = mkdtemp(name);
  }
  ~CopyTest() override { std::filesystem::remove_all(folder); }

  Database open(const std::string& name) {
    auto opened = Database::open(folder / name, pairs, 1);
    EXPECT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, "");
    return std::move(opened->database);
  }
  static int64_t difference(const Database& database) {
    Statement s = database.statement("SELECT max(amount) - min(amount) FROM t");
    return s.row() ? s.number(0) : -1;
  }

  std::filesystem::path folder;
};

TEST_F(CopyTest, a_copy_has_one_committed_state_while_another_writes) {
  Database database = open("a.db");
  ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1, 0, ''), (2, 0, '')"));
  std::atomic<bool> is_ended = false;
  std::atomic<int64_t> written = 0;
  std::thread writer([&] {
    for (; !is_ended; ++written) {
      const auto added = database.transact([](sqlite3* connection) {
        // Each statement changes many pages.
        for (const char* row :
             {"UPDATE t SET amount = amount + 1, text = hex(randomblob(9000)) WHERE id = 1",
              "UPDATE t SET amount = amount + 1, text = hex(randomblob(9000)) WHERE id = 2"})
          if (const int code = sqlite3_exec(connection, row, nullptr, nullptr, nullptr); code != SQLITE_OK)
            return code;
        return SQLITE_OK;
      });
      if (!added) ADD_FAILURE() << added.error().message;
    }
  });
  for (int i = 0; i < 20; ++i) {
    const int64_t before = written;
    while (written < before + 3) std::this_thread::yield();
    const std::string name = fmt::format("copy{}.db", i);
    const auto copied = copy_database(folder / "a.db", folder / name);
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_FALSE(std::filesystem::exists(folder / (name + "-wal")));
    struct stat status {};
    ASSERT_EQ(stat((folder / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(difference(open(name)), 0);
  }
  is_ended = true;
  writer.join();
}

TEST_F(CopyTest, a_failed_copy_leaves_no_file) {
  { open("a.db"); }
  const auto refused = [&](const std::string& name, const std::string& reason) {
    const auto copied = copy_database(folder / name, folder / "copy.db");
    ASSERT_FALSE(copied) << name;
    EXPECT_THAT(copied.error().message, HasSubstr(reason)) << name;
    EXPECT_FALSE(std::filesystem::exists(folder / "copy.db")) << name;
  };
  refused("none.db", "none.db: unable to open database file");
  std::ofstream(folder / "text.db") << std::string(8192, 'x');
  refused("text.db", "text.db: the database is damaged");
  std::filesystem::create_symlink(folder / "a.db", folder / "link.db");
  refused("link.db", "link.db: unable to open database file");
  // A page in the middle of a large database.
  {
    const Database large = open("torn.db");
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE(
          large.execute(fmt::format("INSERT INTO t VALUES ({}, 0, hex(randomblob(2000)))", i).c_str()));
    ASSERT_TRUE(large.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  std::fstream(folder / "torn.db", std::ios::in | std::ios::out)
      .seekp(4096)
      .write(std::string(4096, '\xff').data(), 4096);
  refused("torn.db", "torn.db: the database is damaged");

  std::ofstream(folder / "copy.db") << "mine";
  EXPECT_THAT(copy_database(folder / "a.db", folder / "copy.db").error().message, HasSubstr("File exists"));
  EXPECT_EQ(std::filesystem::file_size(folder / "copy.db"), 4u) << "a file of another is kept";
}

}  // namespace
}  // namespace carve::sqlite
