#include "controller/runtime/program_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "os/clock.h"
#include "os/directory.h"

namespace carve::controller {
namespace {

using runner::ProgramPhase;

// A clock, and a folder with the directory of one program as its supervisor writes it.
struct ProgramReaderTest : testing::Test {
  ProgramReaderTest() {
    char name[] = "/tmp/carve-reader-XXXXXX";
    folder = mkdtemp(name);
    std::filesystem::create_directory(folder / "a");
    reader.emplace(folder);
  }
  ~ProgramReaderTest() override { std::filesystem::remove_all(folder); }

  void begin(uint32_t attempt) {
    lock = os::Fd(open((folder / "a/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
    ASSERT_TRUE(runner::hold_liveness(lock.get()));
    write({.attempt = attempt, .started_ns = 1});
  }
  void write(const runner::SupervisorState& state) const {
    ASSERT_TRUE(runner::write_state(folder / "a", state));
  }
  runner::SeenProgram read_after(int64_t seconds) {
    now += seconds * os::second;
    reader->take_reports(now);
    const auto seen = reader->read("a");
    EXPECT_TRUE(seen) << seen.error().message;
    return seen.value_or(runner::SeenProgram{});
  }
  // Returns whether the next turns read no file.
  bool rests() {
    const uint64_t before = reader->reads();
    for (int i = 0; i < 5; ++i) read_after(1);
    return reader->reads() == before;
  }

  std::filesystem::path folder;
  os::Fd lock;
  int64_t now = 1000 * os::second;
  std::optional<ProgramReader> reader;
};

TEST_F(ProgramReaderTest, reads_a_running_program_until_it_is_quiet_and_then_twice_a_minute) {
  begin(1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read_after(1).phase(), ProgramPhase::running);
  EXPECT_TRUE(rests());
  const uint64_t before = reader->reads();
  for (int i = 0; i < 60; ++i) EXPECT_EQ(read_after(1).phase(), ProgramPhase::running);
  EXPECT_EQ(reader->reads(), before + 2);
}

TEST_F(ProgramReaderTest, notices_an_end_in_the_next_turn) {
  begin(1);
  for (int i = 0; i < 4; ++i) read_after(1);
  ASSERT_TRUE(rests());
  write({.attempt = 1, .started_ns = 1, .ended_ns = 2, .exit_status = 3});
  EXPECT_EQ(read_after(1).state.exit_status, 3u);
  for (int i = 0; i < 4; ++i) read_after(1);
  EXPECT_TRUE(rests()) << "an ended program is not read again either";
  begin(2);
  EXPECT_EQ(read_after(1).phase(), ProgramPhase::running);
  EXPECT_EQ(read_after(1).state.attempt, 2u);
}

TEST_F(ProgramReaderTest, notices_a_killed_supervisor_although_it_writes_nothing) {
  begin(1);
  for (int i = 0; i < 4; ++i) read_after(1);
  ASSERT_TRUE(rests());
  lock.reset();
  EXPECT_EQ(read_after(1).phase(), ProgramPhase::lost);
}

TEST_F(ProgramReaderTest, treats_the_next_directory_of_a_name_as_another_program) {
  begin(1);
  for (int i = 0; i < 4; ++i) read_after(1);
  ASSERT_TRUE(rests());
  std::filesystem::rename(folder / "a", folder / ".ended-a");
  std::filesystem::create_directory(folder / "a");
  EXPECT_EQ(read_after(1).phase(), ProgramPhase::never_started);
  write({.attempt = 7, .started_ns = 1, .ended_ns = 2});
  EXPECT_EQ(read_after(0).state.attempt, 7u);
  reader->forget("a");
  std::filesystem::remove_all(folder / "a");
  EXPECT_EQ(read_after(1).phase(), ProgramPhase::never_started);
}

TEST_F(ProgramReaderTest, treats_a_program_without_a_directory_as_never_started) {
  std::filesystem::remove(folder / "a");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read_after(1).phase(), ProgramPhase::never_started);
  std::filesystem::create_directory(folder / "a");
  begin(1);
  EXPECT_EQ(read_after(0).phase(), ProgramPhase::running);
}

// A symbolic link in place of the directory is not a program of Carve's.
TEST_F(ProgramReaderTest, does_not_follow_a_symbolic_link) {
  std::filesystem::rename(folder / "a", folder / "b");
  std::filesystem::create_directory_symlink(folder / "b", folder / "a");
  reader->take_reports(now);
  EXPECT_FALSE(reader->read("a"));
  EXPECT_FALSE(reader->read("a"));
}

}  // namespace
}  // namespace carve::controller
