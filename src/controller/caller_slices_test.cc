#include "controller/caller_slices.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "client/testing/agent_stub.h"
#include "http/server.h"
#include "os/clock.h"
#include "os/socket.h"

namespace carve::controller {
namespace {

using client::AgentStub;
using client::json_answer;

const os::ProcessId this_process = os::stat_of(getpid())->id;
const http::Caller asking = http::Caller::user(0, this_process, {});
const std::string question =
    fmt::format("GET /v1/processes/{}?start={}", this_process.pid, this_process.start);

AgentStub answering(const std::string& answer) {
  return AgentStub(std::map<std::string, std::string>{{question, answer}});
}
std::string in_slice(const std::string& name) {
  return json_answer(200, fmt::format(R"({{"slice": "{}"}})", name));
}

// Returns the caller as identified by the agents at these sockets.
http::Caller found(const std::vector<std::string>& sockets) {
  os::Loop loop;
  CallerSlices slices(loop, sockets);
  std::optional<http::Caller> out;
  const auto held = slices.find(asking, [&](http::Caller caller) {
    out = std::move(caller);
    loop.stop();
  });
  if (!out) loop.run();
  return *out;
}

TEST(CallerSlices, marks_a_caller_with_the_slice_that_one_of_the_agents_returns) {
  const AgentStub none = answering(in_slice("")), of_b = answering(in_slice("b"));
  EXPECT_EQ(found({none.socket()}).slice(), nullptr);
  EXPECT_EQ(found({}).slice(), nullptr);
  const http::Caller inside = found({none.socket(), of_b.socket()});
  ASSERT_NE(inside.slice(), nullptr);
  EXPECT_EQ(*inside.slice(), "b");
  EXPECT_FALSE(inside.may_create());
}

// This test runs outside of slices, and so does the caller according to its cgroup.
TEST(CallerSlices, does_not_wait_for_an_agent_that_cannot_answer) {
  for (const std::string& answer : {std::string(), json_answer(404, "{}"), json_answer(200, "nonsense"),
                                    std::string("HTTP/1.1 200 X\r\n")}) {
    const AgentStub agent = answering(answer), of_b = answering(in_slice("b"));
    EXPECT_EQ(found({agent.socket()}).slice(), nullptr) << answer;
    EXPECT_EQ(*found({agent.socket(), of_b.socket()}).slice(), "b") << answer;
  }
  EXPECT_EQ(found({"/nonexistent/s", std::string(200, 'x')}).slice(), nullptr);
}

// The agent accepts connections but reads nothing. The first caller waits until the agent counts as silent;
// later callers do not wait.
TEST(CallerSlices, waits_for_a_silent_agent_only_once) {
  char folder[] = "/tmp/carve-silent-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s";
  const os::Fd listener = *os::listen_at(path, SOCK_STREAM, 0600);
  os::Loop loop;
  CallerSlices slices(loop, {path});
  int answers = 0;
  const auto first = slices.find(asking, [&](const http::Caller&) {
    ++answers;
    loop.stop();
  });
  EXPECT_EQ(answers, 0);
  loop.run();
  EXPECT_EQ(answers, 1);
  std::vector<std::shared_ptr<void>> held;
  for (int i = 0; i < 200; ++i) held.push_back(slices.find(asking, [&](const http::Caller&) { ++answers; }));
  EXPECT_EQ(answers, 201);
  std::filesystem::remove_all(folder);
}

// Every request is looked up again, because a process may enter a slice between two of its connections.
TEST(CallerSlices, looks_up_each_caller_over_one_connection_to_the_agent) {
  char folder[] = "/tmp/carve-asked-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/s";
  os::Loop loop;
  int connections = 0, questions = 0;
  const http::Server agent(loop, *os::listen_at(path, SOCK_STREAM | SOCK_NONBLOCK, 0600),
                           {.handle =
                                [&](const http::Request& request, const http::Caller&) {
                                  EXPECT_EQ(request.path + "?" + request.query, question.substr(4));
                                  return http::Response{
                                      200, "application/json",
                                      ++questions > 20 ? R"({"slice": "b"})" : R"({"slice": ""})"};
                                },
                            .refuse =
                                [](unsigned status, const std::string&) {
                                  return http::Response{status, "", ""};
                                },
                            .identify =
                                [&](int) {
                                  ++connections;
                                  return std::optional(http::Caller());
                                }});
  CallerSlices slices(loop, {path});
  std::vector<std::shared_ptr<void>> held;
  std::vector<bool> inside;
  const auto ask = [&] {
    held.push_back(slices.find(asking, [&](const http::Caller& caller) {
      inside.push_back(caller.slice() != nullptr);
      if (inside.size() >= 20) loop.stop();
    }));
  };
  for (int i = 0; i < 20; ++i) ask();
  loop.run();
  ask();
  loop.run();
  EXPECT_EQ(std::ranges::count(inside, true), 1);
  EXPECT_TRUE(inside.back());
  EXPECT_EQ(questions, 21);
  EXPECT_EQ(connections, 1);
  std::filesystem::remove_all(folder);
}

TEST(CallerSlices, does_not_call_back_for_a_closed_connection) {
  const AgentStub agent = answering(in_slice("b"));
  os::Loop loop;
  CallerSlices slices(loop, {agent.socket()});
  slices.find(asking, [&](const http::Caller&) { FAIL(); }).reset();
  const auto held = slices.find(asking, [&](const http::Caller&) { loop.stop(); });
  loop.run();
}

TEST(CallerSlices, finds_the_slice_in_the_path_of_a_cgroup) {
  const struct {
    std::map<std::string, std::string> cgroups;
    std::optional<std::string> slice;
  } rows[] = {{{{"", "/carve-1a2b3c4d/train"}}, "train"},
              {{{"", "/outer/carve-1a2b3c4d/train/below"}}, "train"},
              {{{"cpu", "/"}, {"", "/carve-00000000/a"}}, "a"},
              {{}, std::nullopt},
              {{{"", ""}}, std::nullopt},
              {{{"", "/"}}, std::nullopt},
              {{{"", "/carve-1a2b3c4d"}}, std::nullopt},
              {{{"", "/carve-1a2b3c4d/"}}, std::nullopt},
              {{{"", "/carve-1a2b3c4/train"}}, std::nullopt},
              {{{"", "/carve-1A2B3C4D/train"}}, std::nullopt},
              {{{"", "/system.slice/carve-controller.service"}}, std::nullopt},
              {{{"", "/user.slice/carve-1a2b3c4d5/x"}}, std::nullopt}};
  for (const auto& row : rows) EXPECT_EQ(slice_in_cgroups(row.cgroups), row.slice);
}

}  // namespace
}  // namespace carve::controller
