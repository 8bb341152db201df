// Detached programs run without a slice here; the cases of tests/cases/test_detach.py use slices.
#include "runner/detached.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/process.h"
#include "runner/log_files.h"
#include "runner/runner.h"

namespace carve::runner {
namespace {

using testing::HasSubstr;

struct StateFolder {
  StateFolder() {
    char name[] = "/tmp/carve-detached-XXXXXX";
    top = mkdtemp(name);
    folder = top + "/carve/programs/%2Fs";
  }
  ~StateFolder() { std::filesystem::remove_all(top); }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // Starts a program whose directory has this name. It runs in no slice, because the test has no agent.
  Result<void, StartFailure> start(const std::string& name, std::vector<std::string> command) const {
    const std::string supervisor = os::own_folder() + "/../bin/carve-supervise";
    const SuperviseRequest request{.workdir = "/", .command = std::move(command), .is_detached = true};
    return start_detached(folder, name, supervisor, request);
  }
  DetachedProgram until_ended(const std::string& name) const {
    for (;;) {
      auto found = find_detached(folder, name);
      if (found && *found && (*found)->seen.phase() != ProgramPhase::running) return **found;
      usleep(1000);
    }
  }

  std::string top, folder;
};

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(Detached, keeps_the_output_and_the_exit_status_for_its_user_only) {
  const StateFolder s;
  ASSERT_TRUE(s.start("a", {"/bin/sh", "-c", "umask; echo err >&2; exit 3"}));
  const DetachedProgram program = s.until_ended("a");
  EXPECT_EQ(program.seen.state.exit_status, 3u);
  std::vector<std::string> lines;
  for (const LogLine& line : read_log(program.directory, log_folder_name, {}))
    if (line.stream != LogStream::system) lines.push_back(line.text);
  EXPECT_THAT(lines, testing::UnorderedElementsAre("0022", "err"));
  EXPECT_EQ(mode_of(program.directory), 0700u);
  for (const char* const file : {"state.json", "lock", "log/0.log", "program.json"})
    EXPECT_EQ(mode_of(program.directory + "/" + file), 0600u) << file;
}

TEST(Detached, runs_in_a_session_of_its_own) {
  const StateFolder s;
  ASSERT_TRUE(s.start("a", {"sleep", "600"}));
  const auto found = find_detached(s.folder, "a");
  ASSERT_TRUE(found && *found);
  const auto stat = os::stat_of((*found)->seen.state.program_pid);
  ASSERT_TRUE(stat);
  EXPECT_NE(stat->session, getsid(0));
  EXPECT_EQ(stat->session, (*found)->seen.state.supervisor_pid);
  kill((*found)->seen.state.supervisor_pid, SIGTERM);
  EXPECT_EQ(s.until_ended("a").seen.state.signal, static_cast<uint32_t>(SIGTERM));
}

TEST(Detached, reports_a_program_that_cannot_be_started_and_keeps_nothing) {
  const StateFolder s;
  const auto missing = s.start("a", {"/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, no_program_status);
  EXPECT_EQ(missing.error().message, "/no/such/program: there is no such program");
  const auto no_program = s.start("b", {"/etc/passwd"});
  ASSERT_FALSE(no_program);
  EXPECT_EQ(no_program.error().status, not_executable_status);
  EXPECT_TRUE(std::filesystem::is_empty(s.folder));
}

TEST(Detached, reports_a_missing_supervisor_and_a_folder_that_cannot_be_created) {
  const StateFolder s;
  const SuperviseRequest request{.workdir = "/", .command = {"true"}, .is_detached = true};
  const auto missing = start_detached(s.folder, "a", s.top + "/carve-supervise", request);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, failed_status);
  EXPECT_THAT(missing.error().message, HasSubstr("carve-supervise: No such file"));
  std::ofstream(s.top + "/file") << "x";
  const auto no_folder = start_detached(s.top + "/file/carve/programs/s", "a", "/bin/true", request);
  ASSERT_FALSE(no_folder);
  EXPECT_THAT(no_folder.error().message, HasSubstr("/file"));
}

TEST(Detached, a_name_belongs_to_its_last_program) {
  const StateFolder s;
  ASSERT_TRUE(s.start("a", {"sleep", "600"}));
  const auto second = s.start("a", {"true"});
  ASSERT_FALSE(second) << "the first program still runs";
  EXPECT_THAT(second.error().message, HasSubstr("still ending"));
  kill((*find_detached(s.folder, "a"))->seen.state.supervisor_pid, SIGTERM);
  s.until_ended("a");
  ASSERT_TRUE(s.start("a", {"sh", "-c", "exit 4"}));
  EXPECT_EQ(s.until_ended("a").seen.state.exit_status, 4u);
}

TEST(Detached, keeps_a_limited_number_of_ended_programs) {
  const StateFolder s;
  for (size_t i = 0; i < max_ended_programs + 2; ++i) {
    ASSERT_TRUE(s.start(std::to_string(i), {"true"}));
    s.until_ended(std::to_string(i));
  }
  ASSERT_TRUE(s.start("last", {"true"}));
  EXPECT_FALSE(*find_detached(s.folder, "0"));
  EXPECT_FALSE(*find_detached(s.folder, "1"));
  EXPECT_TRUE(*find_detached(s.folder, "2"));
  s.until_ended("last");
}

TEST(Detached, any_text_may_be_a_name) {
  const StateFolder s;
  ASSERT_TRUE(s.start("a", {"true"}));
  s.until_ended("a");
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("../%2Fs"),
                                  std::string("a/log"), std::string("a\0b", 3), std::string(5000, 'x')}) {
    const auto found = find_detached(s.folder, name);
    ASSERT_TRUE(found) << name;
    EXPECT_FALSE(*found) << name;
  }
}

TEST(Detached, the_folder_depends_on_the_user_and_the_agent) {
  EXPECT_EQ(detached_folder("", "/home/a", "/run/carve/carved.sock"),
            "/home/a/.local/state/carve/programs/%2Frun%2Fcarve%2Fcarved.sock");
  EXPECT_EQ(detached_folder("/state", "/home/a", "/x/../100%"), "/state/carve/programs/%2F100%25");
  EXPECT_EQ(detached_folder("relative", "/home/a", "/s"), "/home/a/.local/state/carve/programs/%2Fs");
}

}  // namespace
}  // namespace carve::runner
