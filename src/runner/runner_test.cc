#include "runner/runner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "client/testing/agent_stub.h"
#include "os/fd.h"
#include "wire/api/problem.h"

namespace carve::runner {
namespace {

using client::json_answer;
using testing::Contains;
using testing::ElementsAre;
using testing::StartsWith;

// A slice "a" and an agent that allows everything unless a test replaces a response.
struct World {
  explicit World(std::map<std::string, std::string> instead = {}, unsigned unanswered = 0)
      : agent(merged(std::move(instead)), unanswered) {}
  static std::map<std::string, std::string> merged(std::map<std::string, std::string> answers) {
    answers.emplace("POST /v1/slices/a/supervise", json_answer(200, "{}"));
    answers.emplace("POST /v1/slices/a/enter",
                    json_answer(200, R"({"cgroup": true, "environment": {"CARVE_TEST": "from the agent"}})"));
    answers.emplace("DELETE /v1/slices/a", json_answer(200, R"({"name": "a"})"));
    return answers;
  }
  // Runs the runner in a separate process, because a signal to it must not reach the stub's thread.
  int run(std::vector<std::string> program, bool is_supervised = false) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    os::Fd from_runner(ends[0]), to_test(ends[1]);
    const pid_t runner = fork();
    if (runner == 0) {
      const auto say = [&](const std::string& text) {
        const std::string line = text + "\n";
        if (write(to_test.get(), line.data(), line.size()) < 0) _exit(1);
      };
      const client::AgentClient called(agent.socket());
      _exit(runner::run({.agent = called,
                         .slice = "a",
                         .program = std::move(program),
                         .say = say,
                         .complain = [&](const api::Problem& problem) { say(problem.detail); },
                         .is_supervised = is_supervised}));
    }
    to_test.reset();
    char bytes[4096];
    for (ssize_t n; (n = read(from_runner.get(), bytes, sizeof bytes)) > 0;)
      said.append(bytes, static_cast<size_t>(n));
    int status = 0;
    EXPECT_EQ(waitpid(runner, &status, 0), runner);
    return exit_status(status);
  }

  client::AgentStub agent;
  std::string said;  // One line for each message.
};

TEST(Runner, passes_the_exit_status_through) {
  for (const int status : {0, 1, 7, 255}) {
    World world;
    EXPECT_EQ(world.run({"sh", "-c", "exit " + std::to_string(status)}), status);
    EXPECT_EQ(world.said, "");
  }
  World world;
  EXPECT_EQ(world.run({"sh", "-c", "kill -9 $$"}), 128 + SIGKILL);
}

TEST(Runner, requests_supervision_then_enters_then_executes_with_the_agents_environment) {
  World world;
  EXPECT_EQ(world.run({"sh", "-c", "test \"$CARVE_TEST\" = 'from the agent'"}), 0);
  EXPECT_THAT(world.agent.requests(),
              ElementsAre(StartsWith("POST /v1/slices/a/supervise"), StartsWith("POST /v1/slices/a/enter")));
}

// A killed agent does not respond, but its successor does.
TEST(Runner, waits_for_the_next_agent_only_under_a_supervisor) {
  World world({}, 3);
  EXPECT_EQ(world.run({"sh", "-c", "exit 7"}, true), 7);
  EXPECT_EQ(world.said, "");
  const auto requests = world.agent.requests();
  EXPECT_EQ(std::ranges::count_if(requests, [](const auto& r) { return r.find("/supervise") != r.npos; }), 4);
  EXPECT_EQ(std::ranges::count_if(requests, [](const auto& r) { return r.find("/enter") != r.npos; }), 1);
  World alone({}, 1);
  EXPECT_EQ(alone.run({"true"}), failed_status) << "carve run reports the error immediately";
}

TEST(Runner, reports_why_a_program_cannot_be_executed) {
  World world;
  EXPECT_EQ(world.run({"/nowhere/program"}), no_program_status);
  EXPECT_EQ(world.said, "/nowhere/program: there is no such program\n");
  World other;
  EXPECT_EQ(other.run({"/tmp"}), not_executable_status);
  EXPECT_THAT(other.said, StartsWith("/tmp: "));
}

TEST(Runner, releases_the_slice_if_it_cannot_be_supervised) {
  World world(
      {{"POST /v1/slices/a/supervise", json_answer(409, R"({"detail": "it is supervised already"})")}});
  EXPECT_EQ(world.run({"true"}), failed_status);
  EXPECT_EQ(world.said, "it is supervised already\n");
  EXPECT_THAT(world.agent.requests(), Contains(StartsWith("DELETE /v1/slices/a")));
}

TEST(Runner, releases_the_slice_if_the_program_cannot_enter) {
  World world(
      {{"POST /v1/slices/a/enter", json_answer(409, R"({"detail": "a program entered it before"})")}});
  EXPECT_EQ(world.run({"true"}), failed_status);
  EXPECT_THAT(world.agent.requests(), Contains(StartsWith("DELETE /v1/slices/a")));
}

TEST(Runner, prepends_libraries_and_replaces_other_variables) {
  setenv("LD_LIBRARY_PATH", "/old", 1);
  unsetenv("LD_PRELOAD");
  setenv("CARVE_TEST", "old", 1);
  set_environment({{"LD_LIBRARY_PATH", "/new"}, {"LD_PRELOAD", "/x.so"}, {"CARVE_TEST", "new"}});
  EXPECT_STREQ(getenv("LD_LIBRARY_PATH"), "/new:/old");
  EXPECT_STREQ(getenv("LD_PRELOAD"), "/x.so");
  EXPECT_STREQ(getenv("CARVE_TEST"), "new");
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("LD_PRELOAD");
}

// The program sends the signal to its parent, the runner, which passes it on. Then the program's trap exits.
TEST(Runner, passes_signals_on_to_the_program) {
  World world;
  EXPECT_EQ(world.run({"sh", "-c", "trap 'exit 42' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"}),
            42);
}

}  // namespace
}  // namespace carve::runner
