// Fault tests: processes, files and locks around a supervised program are killed, held or forged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "os/directory.h"
#include "os/process.h"
#include "runner/log_files.h"
#include "runner/runner.h"
#include "runner/supervision.h"
#include "wire/api/json.h"

namespace carve::runner {
namespace {

using testing::HasSubstr;

// Waits until the condition is true. Returns false after half a minute.
bool is_soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    usleep(1000);
  }
  return false;
}

// A program's directory. Its supervisors are children of the test, each in its own session.
struct FaultFolder {
  FaultFolder() {
    char name[] = "/tmp/carve-faults-XXXXXX";
    path = mkdtemp(name);
  }
  ~FaultFolder() { std::filesystem::remove_all(path); }

  pid_t begin(const std::string& script, uint32_t attempt = 1) const {
    const SuperviseRequest request{.directory = path,
                                   .attempt = attempt,
                                   .workdir = path,
                                   .command = {"/bin/sh", "-c", script},
                                   .env = {{"PATH", "/usr/bin:/bin"}}};
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setsid();
    _exit(supervise(request));
  }
  // Returns the exit status of a supervisor, or 1000 + the signal that ended it.
  static int wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  SeenProgram seen() const {
    const auto program = read_program(path);
    EXPECT_TRUE(program) << program.error().message;
    return program ? *program : SeenProgram{};
  }
  std::string text(const char* name) const {
    std::ifstream in(path / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> log() const {
    std::vector<std::string> out;
    for (const LogLine& line : read_log(path, log_folder_name, {})) out.push_back(line.text);
    return out;
  }

  std::filesystem::path path;
};

bool runs(const SupervisorState& state) {
  return bool(os::open_process({.pid = state.program_pid, .start = state.program_start}));
}

TEST(SupervisionFaults, one_of_two_supervisors_for_an_attempt_starts_the_program) {
  for (int round = 0; round < 40; ++round) {
    const FaultFolder folder;
    const pid_t pids[] = {folder.begin("echo x >> ran"), folder.begin("echo x >> ran")};
    int done = 0;
    for (const pid_t pid : pids) {
      const int status = FaultFolder::wait(pid);
      EXPECT_TRUE(status == 0 || status == supervised_status || status == begun_status) << status;
      done += status == 0;
    }
    ASSERT_EQ(done, 1);
    ASSERT_EQ(folder.text("ran"), "x\n");
    ASSERT_EQ(folder.seen().phase(), ProgramPhase::ended);
  }
}

// Conditions that become true between two writes of a supervisor.
bool has_lock(const FaultFolder& f) { return std::filesystem::exists(f.path / lock_file_name); }
bool is_begun(const FaultFolder& f) { return f.seen().state.attempt == 1; }
bool has_program(const FaultFolder& f) { return f.seen().state.program_pid != 0; }
bool has_run(const FaultFolder& f) { return f.text("ran") == "1\n"; }

TEST(SupervisionFaults, a_supervisor_killed_at_any_moment_starts_no_program_twice_and_leaves_none_running) {
  for (int round = 0; round < 24; ++round) {
    const FaultFolder folder;
    constexpr bool (*moments[])(const FaultFolder&) = {has_lock, is_begun, has_program, has_run};
    const pid_t supervisor = folder.begin("echo 1 >> ran; sleep 600 & wait");
    ASSERT_TRUE(is_soon([&] { return moments[round % 4](folder); }));
    for (int more = round * 20; more > 0; --more) getppid();  // Waits for a varying time.
    kill(supervisor, SIGKILL);
    ASSERT_EQ(FaultFolder::wait(supervisor), 1000 + SIGKILL);

    // A child that has not been executed yet also holds the lock until the kernel has killed it.
    ASSERT_TRUE(is_soon([&] { return !folder.seen().is_supervised; }));
    const SeenProgram seen = folder.seen();
    EXPECT_EQ(seen.phase(), seen.state.attempt == 0 ? ProgramPhase::never_started : ProgramPhase::lost);
    EXPECT_TRUE(is_soon([&] { return !runs(seen.state); }));
    const std::string ran = folder.text("ran");
    const int again = FaultFolder::wait(folder.begin("echo 1 >> ran"));
    EXPECT_EQ(again, seen.state.attempt == 0 ? 0 : begun_status);
    EXPECT_EQ(folder.text("ran"), seen.state.attempt == 0 ? "1\n" : ran);
    EXPECT_EQ(FaultFolder::wait(folder.begin("echo 2 >> ran", 2)), 0);
    EXPECT_EQ(folder.seen().phase(), ProgramPhase::ended);
  }
}

TEST(SupervisionFaults, processes_of_a_killed_supervisor_end_before_the_next_attempt) {
  const FaultFolder folder;
  const pid_t supervisor = folder.begin("sleep 600 & echo $! > child; wait");
  pid_t child = 0;
  ASSERT_TRUE(is_soon([&] { return (child = atoi(folder.text("child").c_str())) != 0; }));
  const auto stat = os::stat_of(child);
  ASSERT_TRUE(stat);
  kill(supervisor, SIGKILL);
  FaultFolder::wait(supervisor);
  EXPECT_TRUE(is_soon([&] { return !runs(folder.seen().state); }));
  const os::Fd left = os::open_process(stat->id);
  ASSERT_TRUE(left) << "the kernel kills only the program";
  EXPECT_EQ(FaultFolder::wait(folder.begin("true", 2)), 0);
  EXPECT_TRUE(is_soon([&] { return !os::alive(left); }));
}

TEST(SupervisionFaults, the_process_group_ends_with_its_program) {
  const FaultFolder folder;
  EXPECT_EQ(FaultFolder::wait(folder.begin("sleep 600 & echo $! > child; exit 3")), 0);
  EXPECT_EQ(folder.seen().state.exit_status, 3u);
  const auto child = os::stat_of(atoi(folder.text("child").c_str()));
  EXPECT_TRUE(is_soon([&] { return !child || !os::open_process(child->id); }));
}

TEST(SupervisionFaults, a_descendant_that_keeps_writing_does_not_delay_the_supervisor) {
  const FaultFolder folder;
  const pid_t supervisor = folder.begin(
      "setsid sh -c 'echo $$ > child; while :; do echo on; done' & "
      "while [ ! -s child ]; do sleep 0.01; done; exit 0");
  EXPECT_EQ(FaultFolder::wait(supervisor), 0);
  EXPECT_EQ(folder.seen().phase(), ProgramPhase::ended);
  kill(atoi(folder.text("child").c_str()), SIGKILL);
}

TEST(SupervisionFaults, a_signal_is_distinguished_from_an_exit_status) {
  const FaultFolder folder;
  EXPECT_EQ(FaultFolder::wait(folder.begin("exit 200")), 0);
  EXPECT_EQ(exit_text(folder.seen().state), "exit status 200");
  EXPECT_EQ(FaultFolder::wait(folder.begin("kill -9 $$", 2)), 0);
  EXPECT_EQ(exit_text(folder.seen().state), "signal 9");
}

TEST(SupervisionFaults, the_program_has_no_input_and_no_other_files) {
  const FaultFolder folder;
  EXPECT_EQ(FaultFolder::wait(folder.begin("readlink /proc/self/fd/0; ls /proc/$$/fd | wc -l")), 0);
  EXPECT_THAT(folder.log(), testing::Contains("/dev/null"));
}

TEST(SupervisionFaults, the_default_workdir_is_home_or_the_root) {
  for (const auto& [home, at] : {std::pair("/tmp", "/tmp"), std::pair("/no/such/home", "/")}) {
    const FaultFolder folder;
    const pid_t pid = fork();
    if (pid == 0)
      _exit(supervise({.directory = folder.path, .command = {"/bin/pwd"}, .env = {{"HOME", home}}}));
    EXPECT_EQ(FaultFolder::wait(pid), 0);
    EXPECT_THAT(folder.log(), testing::Contains(at));
  }
}

TEST(SupervisionFaults, readers_never_prevent_a_supervisor_from_starting) {
  const FaultFolder folder;
  ASSERT_EQ(FaultFolder::wait(folder.begin("true")), 0);
  const pid_t reader = fork();
  if (reader == 0)
    for (;;) (void)read_program(folder.path);
  for (uint32_t attempt = 2; attempt < 16; ++attempt)
    EXPECT_EQ(FaultFolder::wait(folder.begin("true", attempt)), 0);
  kill(reader, SIGKILL);
  waitpid(reader, nullptr, 0);
}

TEST(SupervisionFaults, a_program_that_runs_or_has_ended_never_appears_lost) {
  const FaultFolder folder;
  for (uint32_t attempt = 1; attempt < 16; ++attempt) {
    const pid_t supervisor = folder.begin("true", attempt);
    while (folder.seen().state.attempt < attempt) {}
    while (waitpid(supervisor, nullptr, WNOHANG) == 0)
      EXPECT_NE(folder.seen().phase(), ProgramPhase::lost) << attempt;
  }
}

TEST(SupervisionFaults, forged_files_are_rejected_without_blocking) {
  const FaultFolder folder;
  const std::string state = folder.path / state_file_name;
  ASSERT_EQ(mkfifo(state.c_str(), 0666), 0);
  EXPECT_THAT(read_program(folder.path).error().message, HasSubstr("state.json cannot be read"));
  std::filesystem::remove(state);
  std::filesystem::create_symlink("/etc/passwd", state);
  EXPECT_THAT(read_program(folder.path).error().message, HasSubstr("state.json cannot be read"));
  std::filesystem::remove(state);
  std::ofstream(state) << "{\"attempt\": \"many\"";
  EXPECT_THAT(read_program(folder.path).error().message, HasSubstr("state.json"));
  std::filesystem::remove(state);
  std::filesystem::create_directory(folder.path / log_folder_name);
  ASSERT_EQ(mkfifo((folder.path / log_folder_name / "0.log").c_str(), 0666), 0);
  EXPECT_TRUE(read_log(folder.path, log_folder_name, {}).empty());
  EXPECT_EQ(FaultFolder::wait(folder.begin("true")), failed_status) << "the log is not a regular file";
  EXPECT_EQ(folder.seen().phase(), ProgramPhase::never_started);
}

TEST(SupervisionFaults, a_state_of_another_boot_or_with_forged_numbers_kills_no_process) {
  const FaultFolder folder;
  const pid_t other = fork();
  if (other == 0) {
    setsid();
    pause();
    _exit(0);
  }
  ASSERT_TRUE(is_soon([&] { return getsid(other) == other; }));
  const SupervisorState good{.attempt = 1,
                             .started_ns = 1,
                             .program_pid = other,
                             .program_start = os::stat_of(other)->id.start,
                             .supervisor_pid = other,
                             .boot_id = "an earlier process"};
  ASSERT_TRUE(write_state(folder.path, good));
  EXPECT_EQ(FaultFolder::wait(folder.begin("true", 2)), 0);
  SupervisorState forged = good;
  forged.boot_id = os::boot_id();
  forged.attempt = 3;
  ASSERT_TRUE(write_state(folder.path, forged));
  EXPECT_EQ(FaultFolder::wait(folder.begin("true", 4)), 0);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it runs";
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace carve::runner
