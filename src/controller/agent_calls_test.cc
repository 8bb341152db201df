#include "controller/agent_calls.h"

#include <gmock/gmock.h>

#include "client/testing/agent_stub.h"

namespace carve::controller {
namespace {

using client::AgentStub;
using client::json_answer;
using testing::ElementsAre;
using testing::HasSubstr;

NodeObservation node_at(const std::string& socket, int64_t last_seen_ns = 10) {
  return {.record = {.name = "n1", .socket = socket, .last_seen_ns = last_seen_ns},
          .reachability = Reachability::reachable};
}

TEST(AgentCalls, pass_on_an_answer_with_its_status_and_type) {
  AgentStub agent({{"DELETE /v1/slices/a", json_answer(404, R"({"detail":"no slice"})")}});
  const auto answer = AgentCalls().ask(node_at(agent.socket()), {"DELETE", "/v1/slices/a"}, 20);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 404u);
  EXPECT_EQ(answer->type, "application/json");
  EXPECT_EQ(answer->body, R"({"detail":"no slice"})");
}

TEST(AgentCalls, call_a_silent_agent_again_after_its_next_response_to_a_poll) {
  AgentStub agent({{"GET /v1/node", ""}, {"GET /v1/version", json_answer(200, "{}")}});
  AgentCalls calls;
  const auto lost = calls.ask(node_at(agent.socket(), 10), {"GET", "/v1/node"}, 20);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, FailureKind::unavailable);
  const auto refused = calls.ask(node_at(agent.socket(), 20), {"GET", "/v1/version"}, 21);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("node n1: its agent did not respond to a request"));
  EXPECT_THAT(agent.requests(), ElementsAre("GET /v1/node ")) << "the second call did not reach the agent";
  EXPECT_TRUE(calls.ask(node_at(agent.socket(), 22), {"GET", "/v1/version"}, 23));
  EXPECT_TRUE(calls.ask(node_at(agent.socket(), 22), {"GET", "/v1/version"}, 24));
}

TEST(AgentCalls, do_not_reach_an_unreachable_node) {
  AgentStub agent({{"GET /v1/version", json_answer(200, "{}")}});
  NodeObservation node = node_at(agent.socket());
  node.reachability = Reachability::unreachable;
  node.problem = "no agent listens";
  const auto refused = AgentCalls().ask(node, {"GET", "/v1/version"}, 20);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "node n1: no agent listens");
  EXPECT_TRUE(agent.requests().empty());
}

}  // namespace
}  // namespace carve::controller
