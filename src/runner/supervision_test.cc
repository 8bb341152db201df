#include "runner/supervision.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/fd.h"
#include "os/process.h"
#include "runner/log_files.h"

namespace carve::runner {
namespace {

using testing::ElementsAre;

// A program's directory, whose supervisors are children of the test.
struct Supervised {
  std::filesystem::path path;
  Supervised() {
    char name[] = "/tmp/carve-supervise-XXXXXX";
    path = mkdtemp(name);
  }
  ~Supervised() { std::filesystem::remove_all(path); }
  SuperviseRequest request(std::string script, uint32_t attempt = 1) const {
    return {.directory = path,
            .attempt = attempt,
            .workdir = "/",
            .command = {"/bin/sh", "-c", std::move(script)},
            .env = {{"PATH", "/usr/bin:/bin"}, {"A", "b"}}};
  }
  static pid_t begin(const SuperviseRequest& request) {
    const pid_t pid = fork();
    if (pid == 0) _exit(supervise(request));
    return pid;
  }
  static int wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  SeenProgram seen() const { return *read_program(path); }
  std::vector<std::string> log(LogStream stream, const LogSelection& selection = {}) const {
    std::vector<std::string> out;
    for (const LogLine& line : read_log(path, log_folder_name, selection))
      if (line.stream == stream) out.push_back(line.text);
    return out;
  }
  // Waits until the program has written its first line.
  void until_it_says(const std::string& line) const {
    for (int i = 0; i < 3000; ++i) {
      const auto lines = log(LogStream::standard_output);
      if (std::find(lines.begin(), lines.end(), line) != lines.end()) return;
      usleep(10'000);
    }
    FAIL() << "the program did not print " << line;
  }
};

TEST(Supervision, keeps_the_exit_status_if_the_supervisor_is_killed_during_cleanup) {
  const Supervised s;
  SuperviseRequest request = s.request("echo runs; exit 3");
  const std::string pid_file = s.path / "cleanup";
  request.cleanup = {"/bin/sh", "-c", "echo $$ > " + pid_file + "; exec sleep 600"};
  const pid_t supervisor = Supervised::begin(request);
  while (s.seen().state.program_ended_ns == 0) usleep(1000);
  // Until the child of posix_spawn has executed the cleanup, it also holds the supervisor's lock.
  pid_t cleanup = 0;
  while (!(std::ifstream(pid_file) >> cleanup)) usleep(1000);
  EXPECT_EQ(s.seen().phase(), ProgramPhase::running) << "no other attempt may start there";
  EXPECT_TRUE(is_cleaning_up(s.seen().state, s.seen().state.program_ended_ns));
  EXPECT_FALSE(is_cleaning_up(s.seen().state, s.seen().state.program_ended_ns + clean_up_patience_ns));
  kill(supervisor, SIGKILL);
  Supervised::wait(supervisor);
  EXPECT_EQ(s.seen().phase(), ProgramPhase::ended);
  EXPECT_EQ(exit_text(s.seen().state), "exit status 3");
  kill(cleanup, SIGKILL);
}

TEST(Supervision, keeps_the_exit_status_and_both_streams) {
  const Supervised s;
  EXPECT_EQ(s.seen().state.attempt, 0u);
  EXPECT_EQ(Supervised::wait(Supervised::begin(s.request("echo out $A; echo err >&2; exit 3"))), 0);
  const SeenProgram seen = s.seen();
  EXPECT_EQ(seen.state.attempt, 1u);
  EXPECT_FALSE(seen.is_supervised);
  EXPECT_EQ(exit_text(seen.state), "exit status 3");
  EXPECT_GT(seen.state.ended_ns, seen.state.started_ns);
  EXPECT_THAT(s.log(LogStream::standard_output), ElementsAre("out b"));
  EXPECT_THAT(s.log(LogStream::standard_error), ElementsAre("err"));
}

TEST(Supervision, starts_a_failed_program_again_as_often_as_requested) {
  const Supervised s;
  SuperviseRequest request =
      s.request("echo x >> ran; echo $(wc -l < ran); [ $(wc -l < ran) -lt 3 ] || exit 0; exit 5");
  request.workdir = s.path;
  request.max_restarts = 1;
  EXPECT_EQ(Supervised::wait(Supervised::begin(request)), 0);
  EXPECT_EQ(exit_text(s.seen().state), "exit status 5");
  EXPECT_EQ(s.seen().state.attempt, 2u);
  EXPECT_THAT(s.log(LogStream::standard_output), ElementsAre("2"));
  EXPECT_THAT(s.log(LogStream::standard_output, {.previous = true}), ElementsAre("1"));
  EXPECT_THAT(s.log(LogStream::system, {.previous = true}),
              testing::Contains("exit status 5; starting the program again in 100 ms, restart 1 of 1"));
  request.attempt = 3;
  request.max_restarts = 5;
  EXPECT_EQ(Supervised::wait(Supervised::begin(request)), 0);
  EXPECT_EQ(exit_text(s.seen().state), "exit status 0");
  EXPECT_EQ(s.seen().state.attempt, 3u) << "a program that succeeds is not started again";
}

TEST(Supervision, does_not_start_a_program_again_that_cannot_be_executed) {
  const Supervised s;
  SuperviseRequest request = s.request("");
  request.command = {"/no/such/program"};
  request.max_restarts = 5;
  EXPECT_EQ(Supervised::wait(Supervised::begin(request)), 0);
  EXPECT_EQ(s.seen().state.attempt, 1u);
  EXPECT_EQ(s.seen().state.exit_status, 127u);
}

TEST(Supervision, the_time_between_restarts_doubles_up_to_a_minute) {
  const SupervisorState failed{.exit_status = 1};
  const auto delay = [&](uint32_t restart) { return restart_delay(failed, restart, UINT32_MAX)->count(); };
  EXPECT_EQ(delay(0), 100);
  EXPECT_EQ(delay(1), 200);
  EXPECT_EQ(delay(9), 51'200);
  EXPECT_EQ(delay(10), 60'000);
  EXPECT_EQ(delay(4'000'000'000), 60'000);
  EXPECT_FALSE(restart_delay(failed, 3, 3));
  EXPECT_FALSE(restart_delay(failed, 0, 0));
  EXPECT_FALSE(restart_delay(SupervisorState{}, 0, 3));
}

TEST(Supervision, an_attempt_is_started_once_however_many_supervisors_try) {
  for (int round = 0; round < 8; ++round) {
    const Supervised s;
    std::vector<pid_t> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(Supervised::begin(s.request("echo x >> " + s.path.string() + "/ran")));
    int done = 0;
    for (const pid_t pid : all) {
      const int status = Supervised::wait(pid);
      EXPECT_TRUE(status == 0 || status == supervised_status || status == begun_status) << status;
      done += status == 0;
    }
    EXPECT_EQ(done, 1);
    std::ifstream ran(s.path / "ran");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ran), {}), "x\n");
    EXPECT_EQ(Supervised::wait(Supervised::begin(s.request("true"))), begun_status);
    EXPECT_EQ(Supervised::wait(Supervised::begin(s.request("true", 2))), 0);
  }
}

TEST(Supervision, passes_a_signal_to_the_program_and_its_children) {
  const Supervised s;
  const pid_t supervisor =
      Supervised::begin(s.request("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"));
  s.until_it_says("up");
  EXPECT_TRUE(s.seen().is_supervised);
  kill(supervisor, SIGTERM);
  EXPECT_EQ(Supervised::wait(supervisor), 0);
  EXPECT_EQ(s.seen().state.exit_status, 7u);
  EXPECT_THAT(s.log(LogStream::standard_output), ElementsAre("up", "bye"));
}

TEST(Supervision, a_program_does_not_outlive_a_killed_supervisor) {
  const Supervised s;
  const pid_t supervisor = Supervised::begin(s.request("echo up; exec sleep 600"));
  runner::SupervisorState state;
  for (int i = 0; i < 3000 && state.program_start == 0; ++i) {
    state = s.seen().state;
    usleep(10'000);
  }
  const os::Fd program = os::open_process({.pid = state.program_pid, .start = state.program_start});
  ASSERT_TRUE(program);
  kill(supervisor, SIGKILL);
  Supervised::wait(supervisor);
  for (int i = 0; i < 3000 && os::alive(program); ++i) usleep(10'000);
  EXPECT_FALSE(os::alive(program));
  EXPECT_FALSE(s.seen().is_supervised);
  EXPECT_EQ(s.seen().state.ended_ns, 0) << "the program counts as lost";
}

TEST(Supervision, reports_what_could_not_be_started) {
  const Supervised s;
  SuperviseRequest request = s.request("");
  request.command = {"/no/such/program"};
  EXPECT_EQ(Supervised::wait(Supervised::begin(request)), 0);
  EXPECT_EQ(s.seen().state.exit_status, 127u);
  request.workdir = "/no/such/folder";
  request.attempt = 2;
  EXPECT_EQ(Supervised::wait(Supervised::begin(request)), 0);
  EXPECT_EQ(s.seen().state.exit_status, 125u);
}

TEST(Supervision, long_output_is_kept_within_its_files) {
  const Supervised s;
  EXPECT_EQ(Supervised::wait(
                Supervised::begin(s.request("head -c 60000000 /dev/zero | tr '\\0' 'x' | fold -w 1000"))),
            0);
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(s.path / log_folder_name))
    bytes += entry.file_size();
  EXPECT_LE(bytes, max_log_files * (max_log_file_bytes + max_log_line_bytes));
  EXPECT_GT(bytes, max_log_file_bytes * (max_log_files - 1));
}

}  // namespace
}  // namespace carve::runner
