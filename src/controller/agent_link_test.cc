#include "controller/agent_link.h"

#include <gmock/gmock.h>
#include <poll.h>

#include "client/testing/agent_stub.h"

namespace carve::controller {
namespace {

using client::AgentStub;
using client::json_answer;
using testing::HasSubstr;

const std::string version = json_answer(200, R"({"version": "1.2.3", "started_ns": 5})");
const std::string devices =
    json_answer(200, R"({"devices": [{"index": 1, "usable_bytes": 22, "free_bytes": 11}]})");

// Waits for the poll that is under way.
Poll ended(AgentLink& link) {
  pollfd ready{.fd = link.ready_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, 60'000), 1);
  auto poll = link.take();
  EXPECT_TRUE(poll);
  return std::move(*poll);
}

TEST(AgentLink, a_poll_returns_what_the_agent_answers) {
  AgentStub agent({{"GET /v1/version", version},
                   {"GET /v1/devices", devices},
                   {"GET /v1/slices", json_answer(200, R"({"slices": [{"name": "a"}, {"name": "b"}]})")},
                   {"GET /v1/node", json_answer(200, R"({"memory_unit": "128MiB"})")}});
  AgentLink link(agent.socket());
  EXPECT_FALSE(link.take());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(link.begin_poll());
    const Poll poll = ended(link);
    ASSERT_TRUE(poll.answer) << poll.answer.error();
    EXPECT_GT(poll.ended_ns, 0);
    EXPECT_EQ(poll.answer->version.version, "1.2.3");
    ASSERT_EQ(poll.answer->devices.size(), 1u);
    EXPECT_EQ(poll.answer->devices[0].free_bytes, 11u);
    EXPECT_EQ(poll.answer->slices.size(), 2u);
    EXPECT_EQ(poll.answer->node.memory_unit, MemoryUnit::mib_128);
    EXPECT_FALSE(link.take());
  }
}

TEST(AgentLink, a_poll_without_one_of_the_answers_is_a_sentence) {
  const struct {
    std::map<std::string, std::string> answers;
    const char* sentence;
  } rows[] = {{{}, "refused GET /v1/version with status 404"},
              {{{"GET /v1/version", version}}, "refused GET /v1/devices with status 404"},
              {{{"GET /v1/version", version}, {"GET /v1/devices", devices}},
               "refused GET /v1/slices with status 404"},
              {{{"GET /v1/version", json_answer(200, R"({"version": 7})")}}, "version"},
              {{{"GET /v1/version", ""}}, "closed the connection"}};
  for (const auto& row : rows) {
    AgentStub agent(row.answers);
    AgentLink link(agent.socket());
    ASSERT_TRUE(link.begin_poll());
    const Poll poll = ended(link);
    ASSERT_FALSE(poll.answer);
    EXPECT_THAT(poll.answer.error(), HasSubstr(row.sentence));
  }
  AgentLink nowhere("/nowhere/carved.sock");
  ASSERT_TRUE(nowhere.begin_poll());
  EXPECT_THAT(ended(nowhere).answer.error(), HasSubstr("name another socket with --node NAME=SOCKET"));
}

TEST(AgentLink, ends_with_and_without_a_poll) {
  AgentStub agent({{"GET /v1/version", version}});
  { AgentLink link(agent.socket()); }
  {
    AgentLink link(agent.socket());
    link.begin_poll();
  }
  AgentLink link(agent.socket());
  link.begin_poll();
  link.stop();
  link.stop();
}

}  // namespace
}  // namespace carve::controller
