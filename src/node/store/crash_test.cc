// Interrupts a commit at every possible point. A child grants and ends slices. The parent stops it at a
// system call (ptrace, at entry and at return) and kills it there, once for each of about 60 points. A second
// test fills the disk instead: SQLite's writes fail from the n-th on, for every n. Afterwards the file is
// read as the next agent would read it. It must contain acknowledged changes, no rejected ones, and no change
// in part. (What a power failure can lose beyond that depends on SQLite's synchronous=FULL.)
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "node/store/sqlite_store.h"
#include "sqlite/testing/interruptions.h"

namespace carve::node {
namespace {

using ledger::Ledger;

const ledger::Stamp morning{1'700'000'000'000'000'000, "boot", 12};

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-crash-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string ledger() const { return path / "ledger.db"; }
};

Device device() {
  Device d;
  d.uuid.bytes[0] = 1;
  d.native = 16_GiB;
  d.reserved = 1_GiB;
  return d;
}

Slice holding(std::string name) {
  Slice a;
  a.name = std::move(name);
  a.request_id = "request-" + a.name;
  a.parts = {{device().uuid, 2_GiB, {1}, {}}};
  return a;
}

Ledger reread(SqliteStore& store) {
  Ledger ledger;
  const auto changes = store.read();
  EXPECT_TRUE(changes) << changes.error().message;
  for (const auto& change : *changes) EXPECT_TRUE(ledger.apply(change));
  return ledger;
}

// Creates a ledger with the slice "old".
void prepare(const Directory& dir) {
  auto opened = SqliteStore::open(dir.ledger(), 1);
  ASSERT_TRUE(opened) << opened.error().message;
  Ledger ledger;
  ASSERT_TRUE(post(ledger, *opened->store, *ledger.see(device())));
  ASSERT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("old"), morning)));
}

// Grants "new", writes to the pipe, ends "old", and writes to the pipe again.
[[noreturn]] void work(const Directory& dir, int told) {
  auto opened = SqliteStore::open(dir.ledger(), 1);
  if (!opened) _exit(1);
  Ledger ledger = reread(*opened->store);
  sqlite::wait_for_tracer();
  if (!post(ledger, *opened->store, *ledger.grant(holding("new"), morning)) || write(told, "g", 1) != 1)
    _exit(2);
  if (!post(ledger, *opened->store, *ledger.end(ledger.find("old")->id, morning, "over")) ||
      write(told, "e", 1) != 1)
    _exit(3);
  _exit(0);
}

TEST(Crash, at_any_system_call_of_a_commit_loses_no_acknowledged_change_and_leaves_none_in_part) {
  std::map<std::string, int> outcomes;
  bool died = true;
  for (int n = 0; died; ++n) {
    ASSERT_LT(n, 2000);
    const Directory dir;
    prepare(dir);
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) work(dir, told[1]);
    close(told[1]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == sqlite::no_ptrace)
      GTEST_SKIP() << "ptrace is not permitted here";
    ASSERT_TRUE(WIFSTOPPED(status)) << "status " << status;
    died = sqlite::killed_at(child, n);
    char said[2] = {};
    const ssize_t words = read(told[0], said, sizeof said);
    close(told[0]);

    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened) << "killed at " << n << ": " << opened.error().message;
    ASSERT_EQ(opened->moved_aside, "") << "killed at " << n;
    Ledger ledger = reread(*opened->store);
    ASSERT_TRUE(ledger.balanced()) << "killed at " << n;
    const bool granted = ledger.find("new") != nullptr;
    const bool ended = ledger.find("old") == nullptr;
    EXPECT_TRUE(granted || words < 1) << "acknowledged and lost, killed at " << n;
    EXPECT_TRUE(ended || words < 2) << "acknowledged and lost, killed at " << n;
    EXPECT_TRUE(granted || !ended) << "killed at " << n;
    EXPECT_EQ(ledger.balances().at(device().uuid).free, Bytes{(15 - 2 * (granted + !ended)) * (1_GiB).count});
    // The same request gets the same slice or a new one, never both.
    const auto again = ledger.grant(holding("new"), morning);
    ASSERT_TRUE(again);
    EXPECT_EQ(std::get<ledger::Granted>(*again).record.id, 2u);
    ++outcomes[fmt::format("{}{} said {}", granted ? "granted " : "", ended ? "ended" : "", words)];
  }
  EXPECT_GE(outcomes.size(), 4u) << "before, between write and acknowledgement, and after";
}

TEST(Crash, with_a_disk_that_is_full_from_any_write_on_rejects_the_change_and_recovers) {
  const sqlite::FullDisk disk;
  int refused = 0;
  bool kept = false;
  for (int n = 0; !kept; ++n) {
    ASSERT_LT(n, 200);
    const Directory dir;
    prepare(dir);
    auto opened = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(opened);
    Ledger ledger = reread(*opened->store);
    sqlite::FullDisk::writes_left = n;
    const auto posted = post(ledger, *opened->store, *ledger.grant(holding("new"), morning));
    sqlite::FullDisk::writes_left = -1;
    kept = posted.has_value();
    if (!kept) {
      ++refused;
      EXPECT_NE(posted.error().message.find("disk is full"), std::string::npos) << posted.error().message;
      EXPECT_EQ(ledger.find("new"), nullptr);
      EXPECT_EQ(reread(*opened->store).find("new"), nullptr) << "full from write " << n;
      EXPECT_TRUE(post(ledger, *opened->store, *ledger.grant(holding("new"), morning)))
          << "the disk has space again";
    }
    opened->store.reset();
    auto again = SqliteStore::open(dir.ledger(), 1);
    ASSERT_TRUE(again);
    EXPECT_NE(reread(*again->store).find("new"), nullptr);
  }
  EXPECT_GT(refused, 2);
}

}  // namespace
}  // namespace carve::node
