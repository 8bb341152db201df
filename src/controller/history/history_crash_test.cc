// Interrupts the writing of a minute that also replaces an hour and makes room, once at each system call, and
// once with a disk that is full from each write on. Acknowledged minutes must be there afterwards, and the
// next minute can be written.
#include <gtest/gtest.h>

#include <filesystem>

#include "controller/history/testing/history_files.h"
#include "sqlite/testing/interruptions.h"

namespace carve::controller {
namespace {

constexpr int prepared_minutes = 123;

// Copies a file with minutes 0 to 122 into the folder. Minute 180 replaces the second hour.
void prepare(const HistoryFolder& folder) {
  static const HistoryFolder prepared;
  static const bool is_prepared = [] {
    HistoryStore store = opened(prepared, 0);
    bool out = true;
    for (int minute = 0; minute < prepared_minutes; ++minute)
      out = out && store.write(minute_of({"a", "b"}, minute));
    return out;
  }();
  ASSERT_TRUE(is_prepared);
  std::filesystem::copy(prepared.folder, folder.folder);
}

[[noreturn]] void work(const HistoryFolder& folder, int acknowledgements) {
  auto file = HistoryStore::open(folder.path(), minute_at(200), small_history_bytes);
  if (!file) _exit(1);
  sqlite::wait_for_tracer();
  for (const int minute : {180, 181})
    if (!file->store.write(minute_of({"a", "c"}, minute)) || write(acknowledgements, "w", 1) != 1) _exit(2);
  _exit(0);
}

TEST(HistoryCrash, at_any_system_call_loses_no_minute_that_was_written) {
  bool died = true;
  int interrupted = 0;
  for (int n = 0; died; ++n) {
    ASSERT_LT(n, 3000);
    const HistoryFolder folder;
    prepare(folder);
    int acknowledgements[2];
    ASSERT_EQ(pipe(acknowledgements), 0);
    const pid_t child = fork();
    if (child == 0) work(folder, acknowledgements[1]);
    close(acknowledgements[1]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == sqlite::no_ptrace)
      GTEST_SKIP() << "ptrace is not permitted here";
    ASSERT_TRUE(WIFSTOPPED(status)) << "status " << status;
    died = sqlite::killed_at(child, n);
    char bytes[2] = {};
    const ssize_t acknowledged = read(acknowledgements[0], bytes, sizeof bytes);
    close(acknowledgements[0]);

    auto file = HistoryStore::open(folder.path(), minute_at(200), small_history_bytes);
    ASSERT_TRUE(file) << "killed at " << n << ": " << file.error().message;
    ASSERT_EQ(file->moved_aside, "") << "killed at " << n;
    const auto minutes = minutes_of(file->store, "a");
    EXPECT_EQ(file->store.skipped(), 0u);
    for (int minute = 0; minute < prepared_minutes; ++minute)
      ASSERT_TRUE(minutes.contains(minute)) << minute << " was lost, killed at " << n;
    EXPECT_TRUE(minutes.contains(180) || acknowledged < 1) << "killed at " << n;
    EXPECT_TRUE(minutes.contains(181) || acknowledged < 2) << "killed at " << n;
    EXPECT_TRUE(minutes.contains(180) || !minutes.contains(181)) << "killed at " << n;
    ASSERT_TRUE(file->store.write(minute_of({"a"}, 182))) << "killed at " << n;
    EXPECT_TRUE(minutes_of(file->store, "a").contains(182));
    if (died) ++interrupted;
  }
  EXPECT_GT(interrupted, 40);
}

TEST(HistoryCrash, with_a_full_disk_loses_the_minute_and_nothing_else) {
  const sqlite::FullDisk disk;
  int refused = 0;
  bool is_written = false;
  for (int n = 0; !is_written; ++n) {
    ASSERT_LT(n, 300);
    const HistoryFolder folder;
    prepare(folder);
    HistoryStore store = opened(folder, 200);
    sqlite::FullDisk::writes_left = n;
    const auto written = store.write(minute_of({"a", "c"}, 180));
    sqlite::FullDisk::writes_left = -1;
    is_written = written.has_value();
    if (!is_written) {
      ++refused;
      EXPECT_NE(written.error().message.find("disk is full"), std::string::npos) << written.error().message;
      EXPECT_FALSE(minutes_of(store, "a").contains(180));
    }
    ASSERT_TRUE(store.write(minute_of({"a", "c"}, 181))) << "there is space again";
    const auto minutes = minutes_of(store, "a");
    for (int minute = 0; minute < prepared_minutes; ++minute) ASSERT_TRUE(minutes.contains(minute)) << minute;
    EXPECT_TRUE(minutes_of(store, "c").contains(181));
  }
  EXPECT_GT(refused, 2);
}

}  // namespace
}  // namespace carve::controller
