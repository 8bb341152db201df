#include "controller/agent_poller.h"

#include <gmock/gmock.h>

#include <optional>
#include <utility>

#include "client/testing/agent_stub.h"

namespace carve::controller {
namespace {

using client::AgentStub;
using client::json_answer;
using testing::HasSubstr;

const std::string version = json_answer(200, R"({"version": "1.2.3", "started_ns": 5})");
const std::string devices =
    json_answer(200, R"({"devices": [{"index": 1, "usable_bytes": 22, "free_bytes": 11}]})");

// A poller that runs on its own loop.
struct Polled {
  os::Loop loop;
  std::optional<Poll> last;
  AgentPoller poller;

  explicit Polled(const std::string& socket)
      : poller(loop, socket, [this](const Poll& poll) {
          last = poll;
          loop.stop();
        }) {}
  // Polls once.
  Poll poll() {
    EXPECT_TRUE(poller.begin_poll());
    EXPECT_FALSE(poller.begin_poll()) << "the previous poll is still in progress";
    loop.run();
    return std::move(*std::exchange(last, std::nullopt));
  }
};

TEST(AgentPoller, returns_what_the_agent_answers) {
  AgentStub agent({{"GET /v1/version", version},
                   {"GET /v1/devices", devices},
                   {"GET /v1/slices", json_answer(200, R"({"slices": [{"name": "a"}, {"name": "b"}]})")},
                   {"GET /v1/node", json_answer(200, R"({"memory_unit": "128MiB"})")}});
  Polled polled(agent.socket());
  for (int i = 0; i < 3; ++i) {
    const Poll poll = polled.poll();
    ASSERT_TRUE(poll.answer) << poll.answer.error();
    EXPECT_GT(poll.ended_ns, 0);
    EXPECT_EQ(poll.answer->version.version, "1.2.3");
    ASSERT_EQ(poll.answer->devices.size(), 1u);
    EXPECT_EQ(poll.answer->devices[0].free_bytes, 11u);
    EXPECT_EQ(poll.answer->slices.size(), 2u);
    EXPECT_EQ(poll.answer->node.memory_unit, MemoryUnit::mib_128);
  }
}

TEST(AgentPoller, returns_a_message_if_one_of_the_answers_is_missing) {
  const struct {
    std::map<std::string, std::string> answers;
    const char* message;
  } rows[] = {{{}, "refused GET /v1/version with status 404"},
              {{{"GET /v1/version", version}}, "refused GET /v1/node with status 404"},
              {{{"GET /v1/version", json_answer(200, R"({"version": 7})")}}, "version"},
              {{{"GET /v1/version", ""}}, "closed the connection"}};
  for (const auto& row : rows) {
    AgentStub agent(row.answers);
    const Poll poll = Polled(agent.socket()).poll();
    ASSERT_FALSE(poll.answer);
    EXPECT_THAT(poll.answer.error(), HasSubstr(row.message));
  }
  EXPECT_THAT(Polled("/nowhere/carved.sock").poll().answer.error(),
              HasSubstr("set another socket with --node NAME=SOCKET"));
}

TEST(AgentPoller, can_be_destroyed_with_and_without_a_poll_in_progress) {
  AgentStub agent({{"GET /v1/version", version}});
  { const Polled polled(agent.socket()); }
  {
    Polled polled(agent.socket());
    polled.poller.begin_poll();
  }
  Polled polled(agent.socket());
  polled.poller.begin_poll();
  polled.poller.stop();
  polled.poller.stop();
}

// The poll ends in its thread while the destructor waits for it.
TEST(AgentPoller, does_not_deliver_a_poll_that_ends_after_its_destruction_began) {
  AgentStub agent({{"GET /v1/version", version}});
  os::Loop loop;
  {
    AgentPoller poller(loop, agent.socket(), [](const Poll&) { FAIL(); });
    poller.begin_poll();
  }
  loop.post([&] { loop.stop(); });
  loop.run();
}

}  // namespace
}  // namespace carve::controller
