#include "controller/runtime/launcher.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/process.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;

// The tests' programs are in build/tests, carve-supervise is in build/bin.
std::string supervise_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin/carve-supervise")
      .string();
}

struct LauncherTest : testing::Test {
  LauncherTest() {
    char name[] = "/tmp/carve-launcher-XXXXXX";
    folder = mkdtemp(name);
    chmod(folder.c_str(), 0755);
  }
  ~LauncherTest() override { std::filesystem::remove_all(folder); }
  LaunchRequest request(uid_t uid, std::string script) const {
    return {.uid = uid,
            .supervise = {.directory = folder / "a",
                          .workdir = "/",
                          .command = {"/bin/sh", "-c", std::move(script)},
                          .env = {{"SECRET", "hidden"}}}};
  }
  // Waits until the program has ended.
  runner::SupervisorState ended() const {
    for (int i = 0; i < 3000; ++i) {
      const auto seen = runner::read_program(folder / "a");
      if (seen && seen->state.ended_ns != 0 && !seen->is_supervised) return seen->state;
      usleep(10'000);
    }
    return {};
  }
  std::string written(const char* name) const {
    std::ifstream in(folder / "a" / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder;
};

TEST_F(LauncherTest, starts_a_program_with_its_environment) {
  const auto launcher = Launcher::begin(supervise_program());
  ASSERT_TRUE(launcher) << launcher.error().sentence;
  const auto started =
      launcher->start(request(geteuid(), "echo $SECRET $HOME > " + (folder / "a/out").string() + "; exit 5"));
  ASSERT_TRUE(started) << started.error().sentence;
  EXPECT_EQ(ended().exit_status, 5u);
  EXPECT_THAT(written("out"), HasSubstr("hidden /"));
}

TEST_F(LauncherTest, the_program_runs_as_the_user_with_the_groups_of_that_user) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may start programs of other users";
  const auto launcher = Launcher::begin(supervise_program());
  ASSERT_TRUE(launcher);
  constexpr uid_t user = 65534;
  ASSERT_TRUE(launcher->start(
      request(user, "id -u > " + (folder / "a/out").string() + "; id -g >> " + (folder / "a/out").string())));
  EXPECT_EQ(ended().exit_status, 0u);
  EXPECT_EQ(written("out"), "65534\n65534\n");
}

TEST_F(LauncherTest, refuses_a_user_that_does_not_exist) {
  const auto launcher = Launcher::begin(supervise_program());
  ASSERT_TRUE(launcher);
  const auto started = launcher->start(request(geteuid() == 0 ? 54321 : geteuid() + 1, "true"));
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().sentence,
              testing::AnyOf(HasSubstr("no user with the uid 54321"), HasSubstr("this user only")));
}

TEST_F(LauncherTest, signals_the_program_and_never_another_process) {
  const auto launcher = Launcher::begin(supervise_program());
  ASSERT_TRUE(launcher);
  ASSERT_TRUE(launcher->start(request(geteuid(), "exec sleep 600")));
  runner::SupervisorState state;
  for (int i = 0; i < 3000 && state.program_start == 0; ++i) {
    state = runner::read_program(folder / "a")->state;
    usleep(10'000);
  }
  const os::Fd program = os::open_process({.pid = state.program_pid, .start = state.program_start});
  ASSERT_TRUE(
      launcher->send_signal({.pid = state.program_pid, .start = state.program_start + 1, .signal = SIGKILL}));
  EXPECT_TRUE(os::alive(program)) << "another process with this pid is left alone";
  ASSERT_TRUE(
      launcher->send_signal({.pid = state.program_pid, .start = state.program_start, .signal = SIGTERM}));
  EXPECT_EQ(ended().exit_status, 128u + SIGTERM);
}

TEST(Launcher, needs_the_supervisor) {
  EXPECT_THAT(Launcher::begin("/no/such/program").error().sentence, HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace carve::controller
