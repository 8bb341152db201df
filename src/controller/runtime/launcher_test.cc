#include "controller/runtime/launcher.h"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "controller/runtime/testing/launched_programs.h"
#include "core/invariant.h"
#include "os/process.h"
#include "runner/liveness_file.h"
#include "runner/log_files.h"

namespace carve::controller {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr uid_t other_user = 65534;

// A programs folder below a state directory that no other user may enter.
struct LauncherTest : testing::Test {
  LauncherTest() {
    char name[] = "/tmp/carve-launcher-XXXXXX";
    state = mkdtemp(name);
    folder = state / "programs";
    std::filesystem::create_directory(folder);
  }
  void SetUp() override {
    auto begun = Launcher::begin(supervise_program(), folder);
    ASSERT_TRUE(begun) << begun.error().message;
    launcher.emplace(std::move(*begun));
  }
  ~LauncherTest() override {
    if (launcher) (void)launcher->send_signal({.name = "a", .signal = SIGKILL});
    is_soon([&] { return seen().phase() != runner::ProgramPhase::running; });
    launcher.reset();  // Closes the socket, and the launcher ends.
    while (waitpid(-1, nullptr, 0) > 0) {}
    // Waits, because a process that the launcher started may still be removing the same files.
    is_soon([&] {
      std::error_code another_was_first;
      std::filesystem::remove_all(state, another_was_first);
      return !std::filesystem::exists(state);
    });
  }
  static LaunchRequest request(std::string script, uid_t uid = geteuid(), uint32_t attempt = 1) {
    return {.uid = uid,
            .name = "a",
            .supervise = {.attempt = attempt,
                          .workdir = "/",
                          .command = {"/bin/sh", "-c", std::move(script)},
                          .env = {{"SECRET", "hidden"}}}};
  }
  void start(const LaunchRequest& request) const {
    const auto started = launcher->start(request);
    ASSERT_TRUE(started) << started.error().message;
  }
  runner::SeenProgram seen() const {
    return runner::read_program(folder / "a").value_or(runner::SeenProgram{});
  }
  runner::SupervisorState ended() const {
    EXPECT_TRUE(is_soon([&] { return seen().state.ended_ns != 0 && !seen().is_supervised; }));
    return seen().state;
  }
  runner::SupervisorState running() const {
    EXPECT_TRUE(is_soon([&] { return says("up"); }));
    return seen().state;
  }
  std::vector<std::string> said() const {
    std::vector<std::string> out;
    for (const auto& line : runner::read_log(folder / "a", runner::log_folder_name, {}))
      if (line.stream == runner::LogStream::standard_output) out.push_back(line.text);
    return out;
  }
  bool says(const std::string& text) const {
    const auto lines = said();
    return std::ranges::find(lines, text) != lines.end();
  }
  // Returns the launcher's process, which is the only child of this one.
  static pid_t launcher_pid() {
    for (const os::ProcessStat& process : os::all_processes())
      if (process.parent == getpid() && process.state != 'Z') return process.id.pid;
    invariant(false, "the launcher runs");  // A signal to pid 0 would end the process group.
    return 0;
  }

  std::filesystem::path state, folder;
  std::optional<Launcher> launcher;
};

TEST_F(LauncherTest, starts_a_program_with_its_environment) {
  start(request("echo $SECRET $HOME $LANG; exit 5"));
  EXPECT_EQ(ended().exit_status, 5u);
  EXPECT_THAT(said(),
              testing::ElementsAre("hidden " + std::string(getpwuid(geteuid())->pw_dir) + " C.UTF-8"));
}

TEST_F(LauncherTest, passes_neither_the_environment_nor_the_command_on_a_command_line) {
  start(request("echo up; exec sleep 600"));
  const runner::SupervisorState state_now = running();
  for (const pid_t pid : {launcher_pid(), pid_t{state_now.supervisor_pid}}) {
    for (const char* file : {"cmdline", "environ"}) {
      const std::string text = os::read_file(fmt::format("/proc/{}/{}", pid, file)).value_or("");
      EXPECT_THAT(text, testing::Not(HasSubstr("hidden"))) << pid << file;
      EXPECT_THAT(text, testing::Not(HasSubstr("sleep 600"))) << pid << file;
    }
  }
}

TEST_F(LauncherTest, starts_supervisors_that_are_not_its_children_and_outlive_it) {
  start(request("echo up; exec sleep 600"));
  const runner::SupervisorState state_now = running();
  const pid_t pid = launcher_pid();
  EXPECT_NE(os::stat_of(state_now.supervisor_pid)->parent, pid);
  launcher.reset();  // Closes the socket.
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_TRUE(seen().is_supervised);
  launcher.emplace(*Launcher::begin(supervise_program(), folder));
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGTERM}));
  EXPECT_EQ(runner::exit_text(ended()), "signal 15");
}

// The directory belongs to the program's user, so the program may remove or write any file in it.
TEST_F(LauncherTest, starts_a_program_that_damages_its_directory_once_and_ends_it) {
  const std::string liveness_file = liveness_file_of(folder, "a");
  const auto now = [&] { return runner::read_program(folder / "a", liveness_file); };
  for (const std::string spoil :
       {"rm -f lock state.json", "echo garbage > state.json",
        "rm lock; echo '{\"attempt\":9,\"ended_ns\":1}' > state.json", "rm -f state.json; mkfifo state.json",
        "echo '{\"attempt\":1,\"program_pid\":1}' > state.json"}) {
    start(request(fmt::format("cd {}/a; {}; echo up; sleep 600 & wait", folder.string(), spoil)));
    ASSERT_TRUE(is_soon([&] { return says("up"); })) << spoil;
    ASSERT_TRUE(now()) << spoil;
    EXPECT_EQ(now()->phase(), runner::ProgramPhase::running) << spoil;
    const auto supervisor = runner::living_supervisor(liveness_file);
    ASSERT_TRUE(supervisor && *supervisor) << spoil;

    // Checks that no other process has the same command line or runs in the program's directory, so the
    // second start has ended.
    const auto cmdline = [](pid_t pid) { return os::read_file(fmt::format("/proc/{}/cmdline", pid)); };
    const auto is_second = [&](const os::ProcessStat& process) {
      const pid_t pid = process.id.pid;
      std::error_code gone;
      if (process.session == pid && process.id != *supervisor &&
          std::filesystem::equivalent(fmt::format("/proc/{}/cwd", pid), folder / "a", gone))
        return true;
      return pid != getpid() && pid != launcher_pid() && cmdline(pid) == cmdline(getpid());
    };
    start(request("echo twice", geteuid(), 10));
    ASSERT_TRUE(is_soon([&] { return std::ranges::none_of(os::all_processes(), is_second); }));
    ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGKILL}));
    EXPECT_TRUE(is_soon([&] { return !runner::living_supervisor(liveness_file); })) << spoil;
    EXPECT_FALSE(says("twice")) << spoil;
    ASSERT_TRUE(launcher->remove({.name = "a"}));
    EXPECT_TRUE(is_soon([&] { return !std::filesystem::exists(folder / "a"); })) << spoil;
    EXPECT_FALSE(std::filesystem::exists(liveness_file)) << spoil;
  }
}

TEST_F(LauncherTest, is_reported_as_ended_after_it_was_killed) {
  kill(launcher_pid(), SIGKILL);
  const auto started = launcher->start(request("true"));
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("the launcher has ended"));
}

TEST_F(LauncherTest, runs_the_program_as_its_user_below_a_closed_state_directory_if_root) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may start programs of other users";
  start(request("id -u; id -g; grep -c '^Cap[IPEA].*0000000000000000' /proc/self/status; umask", other_user));
  EXPECT_EQ(ended().exit_status, 0u);
  EXPECT_THAT(said(), testing::ElementsAre("65534", "65534", "4", "0027"));
}

TEST_F(LauncherTest, keeps_three_capabilities_if_root) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has capabilities";
  start(request("true"));  // The response comes after the launcher has closed the other descriptors.
  const std::string status = *os::read_file(fmt::format("/proc/{}/status", launcher_pid()));
  const uint64_t kept = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_CHOWN;
  for (const char* set : {"CapPrm", "CapEff"})
    EXPECT_THAT(status, HasSubstr(fmt::format("{}:\t{:016x}\n", set, kept)));
  ended();
}

TEST_F(LauncherTest, rejects_a_user_that_does_not_exist) {
  const auto started = launcher->start(request("true", geteuid() == 0 ? 54321 : geteuid() + 1));
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message,
              testing::AnyOf(HasSubstr("no user with the uid 54321"), HasSubstr("this user only")));
}

TEST_F(LauncherTest, rejects_names_that_lead_out_of_the_folder) {
  for (const char* name : {"", ".", "..", "../a", "/etc", "a/b", ".ended-a"}) {
    LaunchRequest start = request("true");
    start.name = name;
    EXPECT_FALSE(launcher->start(start)) << name;
    EXPECT_FALSE(launcher->send_signal({.name = name, .signal = SIGTERM})) << name;
    EXPECT_FALSE(launcher->remove({.name = name})) << name;
  }
}

TEST_F(LauncherTest, rejects_an_environment_above_its_limit) {
  LaunchRequest large = request("true");
  large.supervise.env["A"] = std::string(300'000, 'x');
  EXPECT_THAT(launcher->start(large).error().message, HasSubstr("at most 262144"));
  EXPECT_TRUE(launcher->start(request("true"))) << "the launcher still responds";
  ended();
}

TEST_F(LauncherTest, signals_the_program_and_its_children) {
  start(request("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"));
  running();
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGTERM}));
  EXPECT_EQ(ended().exit_status, 7u);
  EXPECT_THAT(said(), Contains("bye"));
  EXPECT_TRUE(launcher->send_signal({.name = "none", .signal = SIGTERM})) << "a program that does not exist";
}

// The program's user may write any process into state.json.
TEST_F(LauncherTest, kills_only_the_program_if_its_state_was_forged) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  const pid_t victim = fork();
  if (victim == 0) {
    setpgid(0, 0);
    pause();
    _exit(0);
  }
  setpgid(victim, victim);
  start(request("echo up; exec sleep 600", other_user));
  const runner::SupervisorState good = running();
  runner::SupervisorState forged = good;
  forged.program_pid = victim;
  forged.program_start = os::stat_of(victim)->id.start;
  ASSERT_TRUE(runner::write_state(folder / "a", forged));
  std::filesystem::permissions(folder / "a" / runner::state_file_name, std::filesystem::perms(0644));
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGKILL}));
  EXPECT_EQ(runner::exit_text(ended()), "signal 9") << "the program is found by its supervisor";
  EXPECT_EQ(waitpid(victim, nullptr, WNOHANG), 0) << "it runs";
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
}

TEST_F(LauncherTest, kills_a_supervisor_that_hangs_if_its_program_has_no_process) {
  start(request("echo up; exec sleep 600"));
  const runner::SupervisorState state_now = running();
  kill(state_now.supervisor_pid, SIGSTOP);
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGKILL}));
  const auto is_zombie = [&] {
    const auto stat = os::stat_of(state_now.program_pid);
    return stat && stat->state == 'Z';
  };
  EXPECT_TRUE(is_soon(is_zombie));
  EXPECT_TRUE(seen().is_supervised);
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGKILL}));
  EXPECT_TRUE(is_soon([&] { return seen().phase() == runner::ProgramPhase::lost; }));
}

TEST_F(LauncherTest, ends_a_supervisor_by_sigterm_if_it_has_not_executed_its_program) {
  LaunchRequest waiting = request("echo up; exec sleep 600");
  waiting.supervise.slice = "s";
  waiting.supervise.agent_socket = state / "no-agent";  // The supervisor waits for the agent.
  start(waiting);
  ASSERT_TRUE(is_soon([&] { return seen().phase() == runner::ProgramPhase::running; }));
  ASSERT_EQ(seen().state.program_pid, 0);
  ASSERT_TRUE(launcher->send_signal({.name = "a", .signal = SIGTERM}));
  EXPECT_TRUE(is_soon([&] { return seen().phase() == runner::ProgramPhase::lost; }));
  EXPECT_FALSE(says("up"));
}

TEST_F(LauncherTest, frees_the_name_of_a_removed_directory_immediately) {
  const uid_t user = geteuid() == 0 ? other_user : geteuid();
  for (int round = 0; round < 3; ++round) {
    start(request("mkdir -p files/deep; echo x > files/deep/x; ln -s / files/root; echo done", user));
    EXPECT_EQ(ended().attempt, 1u);
    ASSERT_TRUE(launcher->remove({.name = "a"}));
    EXPECT_EQ(seen().phase(), runner::ProgramPhase::never_started);
  }
  EXPECT_TRUE(is_soon([&] { return std::filesystem::is_empty(folder); }));
  EXPECT_TRUE(launcher->remove({.name = "a"})) << "a missing directory counts as removed";
}

TEST(Launcher, fails_without_the_supervisor) {
  EXPECT_THAT(Launcher::begin("/no/such/program", "/tmp").error().message, HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace carve::controller
