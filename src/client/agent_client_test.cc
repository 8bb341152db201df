#include "client/agent_client.h"

#include <gmock/gmock.h>

#include <set>

#include "client/testing/agent_stub.h"

namespace carve::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(AgentClient, sends_each_call_with_its_method_path_and_body) {
  AgentStub stub({});
  const AgentClient agent(stub.socket());
  const ContainerSlot slot = *parse_container_slot("s007");
  (void)agent.version();
  (void)agent.node();
  (void)agent.change_node({.memory_unit = MemoryUnit::gib});
  (void)agent.devices();
  (void)agent.doctor();
  (void)agent.consolidation(3);
  (void)agent.trace(7);
  (void)agent.metrics(api::MetricsFormat::openmetrics);
  (void)agent.slices();
  (void)agent.slices(Slices::living_and_ended);
  (void)agent.slice("a");
  (void)agent.grant({.amounts = {.memory_bytes = 5}});
  (void)agent.explain({.amounts = {.memory_bytes = 6}});
  (void)agent.change("a", {.memory_bytes = 7});
  (void)agent.end("a");
  (void)agent.end_when_empty("a");
  (void)agent.thaw("a");
  (void)agent.supervise("a", {.keeps = true});
  (void)agent.time_limit("a");
  (void)agent.limit_time("a", {.seconds = 5});
  (void)agent.enter("a", {.command = "x y"});
  (void)agent.add_container("a", {.pid = 8});
  (void)agent.set_pods("a", {.pods = {{"n", "p", "u"}}});
  (void)agent.slot_files(slot);
  (void)agent.withdraw_slot(slot);
  (void)agent.events();
  (void)agent.watch_events("", [](const StreamEvent&) {});
  (void)agent.usage_after(9);
  (void)agent.usage_of({1, 2});
  const std::vector<std::string> begins = {"GET /v1/version ",
                                           "GET /v1/node ",
                                           "PATCH /v1/node {",
                                           "GET /v1/devices ",
                                           "GET /v1/doctor ",
                                           "GET /v1/consolidation?devices=3 ",
                                           "GET /v1/trace?seconds=7 ",
                                           "GET /metrics ",
                                           "GET /v1/slices ",
                                           "GET /v1/slices?all=true ",
                                           "GET /v1/slices/a ",
                                           "POST /v1/slices {",
                                           "POST /v1/explain {",
                                           "PATCH /v1/slices/a {",
                                           "DELETE /v1/slices/a ",
                                           "DELETE /v1/slices/a?when_empty=true ",
                                           "POST /v1/slices/a/thaw {}",
                                           "POST /v1/slices/a/supervise {",
                                           "GET /v1/slices/a/time-limit ",
                                           "POST /v1/slices/a/time-limit {",
                                           "POST /v1/slices/a/enter {",
                                           "POST /v1/slices/a/container {",
                                           "POST /v1/slices/a/pods {",
                                           "GET /v1/slots/s007 ",
                                           "DELETE /v1/slots/s007 ",
                                           "GET /v1/events ",
                                           "GET /v1/events?watch=true ",
                                           "GET /v1/usage?after=9 ",
                                           "GET /v1/usage?ids=1,2 "};
  const auto requests = stub.requests();
  ASSERT_EQ(requests.size(), begins.size());
  for (size_t i = 0; i < begins.size(); ++i) EXPECT_THAT(requests[i], StartsWith(begins[i]));
  EXPECT_THAT(requests[11], HasSubstr(R"("memory_bytes":5)"));
  EXPECT_EQ(process_slice_path(12, 34), "/v1/processes/12?start=34");
}

// Without the escaping, the first name would end a slice when it is empty, and the third would break the
// request line.
TEST(AgentClient, escapes_names_so_that_each_is_one_segment_of_the_path) {
  const std::pair<std::string, std::string> rows[] = {
      {"a?when_empty=true", "a%3Fwhen_empty%3Dtrue"},
      {"a/thaw", "a%2Fthaw"},
      {"a HTTP/1.1\r\nHost: b", "a%20HTTP%2F1.1%0D%0AHost%3A%20b"},
      {"\xc3\xa4%", "%C3%A4%25"},
      {"Az09-._~", "Az09-._~"}};
  for (const auto& [name, escaped] : rows) {
    std::map<std::string, std::string> answers;
    answers["DELETE /v1/slices/" + escaped] = json_answer(200, R"({"name": "a"})");
    AgentStub stub(answers);
    const auto ended = AgentClient(stub.socket()).end(name);
    EXPECT_TRUE(ended) << ended.error().detail;
    EXPECT_THAT(stub.requests(), ElementsAre("DELETE /v1/slices/" + escaped + " "));
  }
}

struct Report : testing::Test {
  std::map<std::string, std::string> answers = {
      {"GET /v1/version", json_answer(200, R"({"version": "1.2.3", "started_ns": 5})")},
      {"GET /v1/node", json_answer(200, R"({"memory_unit": "128MiB"})")},
      {"GET /v1/devices", json_answer(200, R"({"devices": [{"free_bytes": 11}], "links": ["x"]})")},
      {"GET /v1/slices", json_answer(200, R"({"slices": [{"name": "a"}, {"name": "b"}]})")}};
};

TEST_F(Report, contains_the_four_responses) {
  AgentStub stub(answers);
  const auto report = AgentClient(stub.socket()).report();
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_EQ(report->version.version, "1.2.3");
  EXPECT_EQ(report->node.memory_unit, MemoryUnit::mib_128);
  ASSERT_EQ(report->devices.size(), 1u);
  EXPECT_EQ(report->devices[0].free_bytes, 11u);
  EXPECT_THAT(report->links, ElementsAre("x"));
  EXPECT_EQ(report->slices.size(), 2u);
}

TEST_F(Report, is_the_problem_of_the_call_that_failed) {
  for (const auto& [request, answer] : answers) {
    auto others = answers;
    others.erase(request);
    AgentStub stub(others);
    const auto report = AgentClient(stub.socket()).report();
    ASSERT_FALSE(report) << request;
    EXPECT_THAT(report.error().detail, HasSubstr("refused " + request + " with status 404"));
  }
}

TEST_F(Report, can_be_stopped_between_two_calls) {
  for (size_t calls = 1; calls < answers.size(); ++calls) {
    AgentStub stub(answers);
    size_t asked = 0;
    EXPECT_FALSE(AgentClient(stub.socket()).report([&] { return ++asked == calls; }));
    EXPECT_EQ(stub.requests().size(), calls);
  }
}

}  // namespace
}  // namespace carve::client
