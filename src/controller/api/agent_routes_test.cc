#include "controller/api/agent_routes.h"

#include <gmock/gmock.h>

#include "controller/api/controller_routes.h"
#include "controller/api/testing/routes_fake.h"
#include "controller/api/testing/views_fake.h"
#include "controller/nodes/node_rules.h"
#include "wire/api/device.h"
#include "wire/api/json_value.h"
#include "wire/api/slice.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint32_t agent_operators[] = {0};

http::Caller local(uint32_t uid) { return http::Caller::user(uid, {5, 1}, agent_operators); }
http::Caller by_token(http::Role role) { return http::Caller::token("research", role); }

// Has the slices "mine" of uid 1000, "ours" of the account research, and "other" of root.
struct AgentRoutes : testing::Test {
  ViewsFake views;
  JournalFake journal;
  JournaledRegistry objects{journal, {}, 0};
  TokenBook tokens{journal, {}};
  std::vector<AuditLine> audited;
  ControllerRoutes routes{{.views = views,
                           .audit = [this](const AuditLine& line) { audited.push_back(line); },
                           .objects = objects,
                           .tokens = tokens,
                           .node_actions = &views}};

  AgentRoutes() {
    views.answer = [](const AgentCall& call) -> Outcome<AgentAnswer> {
      const api::Slice slices[] = {{.name = "mine", .owner_uid = 1000, .account = "user1000"},
                                   {.name = "ours", .owner_uid = 2000, .account = "research"},
                                   {.name = "other", .owner_uid = 0, .account = "root"}};
      if (call.target == "/v1/slices" && call.method == "GET")
        return json(api::write(api::SliceList{.slices = {std::begin(slices), std::end(slices)}}));
      for (const api::Slice& slice : slices)
        if (call.target == "/v1/slices/" + slice.name) return json(api::write(slice));
      if (call.target == "/v1/devices")
        return json(api::write(api::DeviceList{{{.name = "NVIDIA A10", .unmanaged_processes = {"pid 7"}}}}));
      if (call.target.starts_with("/v1/slices/"))
        return AgentAnswer{404, "application/problem+json", R"({"detail":"there is no slice"})"};
      return AgentAnswer{201, "application/json", "{}"};
    };
  }
  static AgentAnswer json(const std::string& body) { return {200, "application/json", body}; }
  // Returns the body of the response and checks its status.
  std::string ask(unsigned status, const http::Caller& caller, const std::string& method,
                  const std::string& target, const std::string& text = "") {
    const auto response = routes.answer(request_of(method, target, text), caller);
    const std::string body = std::get<std::string>(response.content);
    EXPECT_EQ(response.status, status) << method << " " << target << ": " << body;
    return body;
  }
  std::vector<std::string> listed(const http::Caller& caller) {
    const auto list =
        api::read<api::SliceList>(ask(200, caller, "GET", "/v1/nodes/n1/slices"), api::Reading::strict);
    std::vector<std::string> names;
    for (const api::Slice& slice : list->slices) names.push_back(slice.name);
    return names;
  }
};

TEST_F(AgentRoutes, show_each_caller_the_slices_of_its_user_or_its_account) {
  EXPECT_THAT(listed(local(0)), ElementsAre("mine", "ours", "other"));
  EXPECT_THAT(listed(local(1000)), ElementsAre("mine"));
  EXPECT_THAT(listed(by_token(http::Role::viewer)), ElementsAre("ours"));
  ask(200, local(1000), "GET", "/v1/nodes/n1/slices/mine");
  const std::string hidden = ask(404, local(1000), "GET", "/v1/nodes/n1/slices/other");
  EXPECT_THAT(hidden, HasSubstr("there is no slice 'other' on node n1"));
  ask(404, local(1000), "GET", "/v1/nodes/n1/slices/..");
}

TEST_F(AgentRoutes, let_owner_account_and_operators_change_slices) {
  for (const char* method : {"PATCH", "DELETE"}) {
    ask(200, local(1000), method, "/v1/nodes/n1/slices/mine", "{}");
    ask(404, local(1000), method, "/v1/nodes/n1/slices/ours", "{}");
    ask(200, by_token(http::Role::user), method, "/v1/nodes/n1/slices/ours", "{}");
    ask(403, by_token(http::Role::viewer), method, "/v1/nodes/n1/slices/ours", "{}");
    ask(200, local(0), method, "/v1/nodes/n1/slices/ours", "{}");
  }
  ASSERT_EQ(audited.size(), 10u);
  EXPECT_EQ(audited[0].change, "PATCH /v1/nodes/n1/slices/mine");
  EXPECT_EQ(audited[3].status, 403u);
}

TEST_F(AgentRoutes, create_a_slice_for_the_caller_and_charge_its_account) {
  const auto created = [&](const http::Caller& caller, const char* body) {
    ask(201, caller, "POST", "/v1/nodes/n1/slices", body);
    return *api::read<api::SliceRequest>(views.bodies.back(), api::Reading::strict);
  };
  const api::SliceRequest of_user = created(local(1000), R"({"name":"a","memory_bytes":1024})");
  EXPECT_EQ(of_user.owner_uid, 1000u);
  EXPECT_EQ(of_user.account, "user1000");
  EXPECT_EQ(of_user.amounts.memory_bytes, 1024u);
  const api::SliceRequest of_token = created(by_token(http::Role::user), "{}");
  EXPECT_EQ(of_token.owner_uid, 2000u);
  EXPECT_EQ(of_token.account, "research");
  EXPECT_EQ(created(local(0), R"({"owner_uid":1001,"lifetime":"explicit"})").owner_uid, 1001u);
}

TEST_F(AgentRoutes, do_not_forward_a_request_for_another_user_or_beyond_the_role) {
  for (const char* path : {"/v1/nodes/n1/slices", "/v1/nodes/n1/explain"}) {
    ask(403, local(1000), "POST", path, R"({"owner_uid":0})");
    ask(403, local(1000), "POST", path, R"({"account":"root"})");
    ask(403, local(1000), "POST", path, R"({"lifetime":"explicit"})");
    ask(403, by_token(http::Role::viewer), "POST", path, "{}");
    ask(400, local(1000), "POST", path, R"({"memroy":1})");
  }
  EXPECT_THAT(views.calls, IsEmpty());
}

TEST_F(AgentRoutes, show_all_slices_only_to_operators) {
  for (const char* path : {"/v1/nodes/n1/consolidation?devices=1", "/v1/nodes/n1/agent-events",
                           "/v1/nodes/n1/trace", "/v1/nodes/n1/usage?after=7", "/v1/nodes/n1/metrics"})
    ask(403, local(1000), "GET", path);
  ask(403, local(1000), "POST", "/v1/nodes/n1/slices/mine/thaw");
  EXPECT_THAT(views.calls, IsEmpty());
  ask(201, local(0), "GET", "/v1/nodes/n1/usage?after=7");
  ask(201, local(0), "GET", "/v1/nodes/n1/metrics");
  ask(201, local(0), "GET", "/v1/nodes/n1/agent-events");
  EXPECT_THAT(views.calls, ElementsAre("n1 GET /v1/usage?after=7", "n1 GET /metrics", "n1 GET /v1/events"));
  ask(400, local(0), "GET", "/v1/nodes/n1/agent-events?watch=true");
}

TEST_F(AgentRoutes, show_all_callers_the_devices_without_the_processes_of_others) {
  EXPECT_THAT(ask(200, local(0), "GET", "/v1/nodes/n1/devices"), HasSubstr("pid 7"));
  const std::string seen = ask(200, by_token(http::Role::viewer), "GET", "/v1/nodes/n1/devices");
  EXPECT_THAT(seen, HasSubstr("NVIDIA A10"));
  EXPECT_THAT(seen, Not(HasSubstr("pid 7")));
}

TEST_F(AgentRoutes, use_the_nodes_isolation_if_the_request_has_none) {
  ASSERT_TRUE(
      objects.add({.key = node_key("n1"),
                   .spec = objects::NodeSpec{},
                   .status = objects::NodeStatus{.mode = {.desired = "memory", .effective = "memory"}}}));
  ask(201, local(1000), "POST", "/v1/nodes/n1/slices", R"({"memory_bytes":1024,"share_bp":500})");
  EXPECT_THAT(views.bodies.back(), HasSubstr(R"("isolation":"memory")"));
}

TEST_F(AgentRoutes, report_an_agent_that_does_not_answer_as_a_problem_of_the_node) {
  views.answer = [](const AgentCall&) -> Outcome<AgentAnswer> {
    return failure(FailureKind::unavailable, "node n1: no answer");
  };
  EXPECT_THAT(ask(503, local(1000), "GET", "/v1/nodes/n1/node"), HasSubstr("node n1: no answer"));
  ask(503, local(1000), "GET", "/v1/nodes/n1/slices");
  views.answer = [](const AgentCall&) -> Outcome<AgentAnswer> { return json("no JSON"); };
  EXPECT_THAT(ask(503, local(1000), "GET", "/v1/nodes/n1/slices"),
              HasSubstr("cannot read the agent's response"));
}

}  // namespace
}  // namespace carve::controller
