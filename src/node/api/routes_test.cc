#include "node/api/routes.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <set>

#include "node/agent/testing/agent_fake.h"
#include "node/api/reply.h"

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t operator_uids[] = {0};
const os::ProcessId here{getpid(), 1};
const http::Caller the_operator = http::Caller::user(0, here, operator_uids);
const http::Caller ada = http::Caller::user(1000, here, operator_uids);
const http::Caller bob = http::Caller::user(2000, here, operator_uids);

struct RoutesTest : testing::Test {
  AgentFake agent;
  Routes routes{agent, [] { return api::Diagnosis{}; }};

  RoutesTest() {
    add_device(agent, 0);
    add_slice(agent, "a", 1000);
    add_slice(agent, "b", 2000);
  }
  http::Response ask(const http::Caller& caller, const std::string& method, const std::string& path,
                     const std::string& body = "") {
    http::Request request;
    request.method = method;
    const size_t query = path.find('?');
    request.path = path.substr(0, query);
    if (query != std::string::npos) request.query = path.substr(query + 1);
    request.body = body;
    http::Response response = routes.answer(request, caller);
    if (const auto* later = std::get_if<http::LaterContent>(&response.content)) {
      waiting = later->begin(later_answer);
      if (later_answer.came) return std::move(*std::exchange(later_answer.came, std::nullopt));
    }
    return response;
  }

  // Receives the late response to the last request.
  struct Later final : http::LaterAnswer {
    std::optional<http::Response> came;
    void answer(http::Response response) override { came = std::move(response); }
  } later_answer;
  std::shared_ptr<void> waiting;  // The part that the connection holds.
};

std::string body(const http::Response& response) { return std::get<std::string>(response.content); }

// Returns each route of the tables, with the slice "a" in place of a name.
std::vector<std::pair<std::string, std::string>> every_route() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::span<const Route> table : {slice_routes(), machine_routes()})
    for (const Route& route : table) {
      std::string path = route.path;
      if (const size_t hole = path.find("{}"); hole != std::string::npos) path.replace(hole, 2, "a");
      out.emplace_back(route.method, path);
    }
  return out;
}

// Returns "GET /v1/slices/{}" for each route in the agent's table in FORMAT.md.
std::set<std::string> documented_routes() {
  std::ifstream file(API_FORMAT);
  std::set<std::string> out;
  const std::regex row(R"(^\| `([A-Z]+) (/[^?`]*)[?`].*)"), name("[A-Z]{2,}");
  for (std::string line; std::getline(file, line) && !line.starts_with("# The controller's API");)
    if (std::smatch found; std::regex_match(line, found, row))
      out.insert(fmt::format("{} {}", found[1].str(), std::regex_replace(found[2].str(), name, "{}")));
  return out;
}

TEST(Routes, are_all_listed_in_the_format) {
  std::set<std::string> served;
  for (const std::span<const Route> table : {slice_routes(), machine_routes()})
    for (const Route& route : table) served.insert(fmt::format("{} {}", route.method, route.path));
  EXPECT_EQ(documented_routes(), served);
}

TEST_F(RoutesTest, show_a_slice_when_the_commands_of_its_processes_are_known) {
  agent.inspects_first = true;
  ask(ada, "GET", "/v1/slices/a");
  ASSERT_TRUE(agent.inspected);
  EXPECT_FALSE(later_answer.came);
  agent.inspected();
  ASSERT_TRUE(later_answer.came);
  EXPECT_THAT(body(*later_answer.came), HasSubstr("\"name\":\"a\""));

  ask(ada, "GET", "/v1/slices/a");
  later_answer.came.reset();
  waiting.reset();
  agent.inspected();
  EXPECT_FALSE(later_answer.came) << "the connection is closed";

  agent.inspected = nullptr;
  EXPECT_EQ(ask(bob, "GET", "/v1/slices/a").status, 404u);
  EXPECT_FALSE(agent.inspected) << "a request of another user needs no inspection";
}

// A TCP connection without a token is anonymous and has no rights.
TEST_F(RoutesTest, all_reject_an_anonymous_caller) {
  EXPECT_GE(every_route().size(), 20u);
  for (const auto& [method, path] : every_route()) {
    const http::Response response = ask(http::Caller(), method, path, "{}");
    EXPECT_EQ(response.status, 401u) << method << " " << path;
    EXPECT_THAT(body(response), HasSubstr("the caller is not identified"));
  }
  EXPECT_THAT(agent.calls, IsEmpty());
}

TEST_F(RoutesTest, all_answer_the_operator) {
  for (const auto& [method, path] : every_route()) {
    const http::Response response = ask(the_operator, method, path, "{}");
    EXPECT_NE(response.status, 401u) << method << " " << path;
    EXPECT_NE(response.status, 404u) << method << " " << path;
    EXPECT_NE(response.status, 405u) << method << " " << path;
    EXPECT_LT(response.status, 500u) << method << " " << path << ": " << body(response);
  }
}

TEST_F(RoutesTest, audit_requests_that_act_with_their_caller_and_result) {
  ask(ada, "POST", "/v1/slices", R"({"name":"n","memory_bytes":1073741824})");
  ask(ada, "DELETE", "/v1/slices/b");
  ask(ada, "GET", "/v1/slices");
  ask(ada, "PATCH", "/v1/slices/a?dryRun=true", R"({"memory_bytes":1073741824})");
  ask(bob, "DELETE", "/v1/slices/b");
  ask(bob, "PATCH", "/v1/node", R"({"labels":{"zone":"a"}})");
  const auto lines = [&](const http::Caller& caller) {
    const auto list = api::read<api::AuditList>(body(ask(caller, "GET", "/v1/audit")), api::Reading::strict);
    std::vector<std::string> out;
    for (const api::AuditEntry& e : list->items)
      out.push_back(
          fmt::format("{} {} {} {} {}", e.caller, e.verb, e.object, e.status, e.message.substr(0, 14)));
    return out;
  };
  EXPECT_THAT(lines(the_operator),
              ElementsAre("uid 1000 create slice n 201 ", "uid 1000 stop slice b 404 there is no sl",
                          "uid 2000 stop slice b 200 ", "uid 2000 set node 403 only operators"));
  EXPECT_EQ(lines(ada).size(), 2u);
  EXPECT_EQ(lines(bob).size(), 2u);
}

TEST_F(RoutesTest, show_callers_why_they_are_operators) {
  agent.has_limits.items = {{{.user = "ada", .uid = 1000, .slices = 4}, {}}};
  EXPECT_THAT(body(ask(ada, "GET", "/v1/whoami")),
              AllOf(HasSubstr(R"("uid":1000,"is_operator":false,"reason":"")"), HasSubstr(R"("slices":4)")));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/whoami")),
              HasSubstr(R"("is_operator":true,"reason":"root")"));
  EXPECT_THAT(body(ask(ada.operating("a member of the group gpu"), "GET", "/v1/whoami")),
              HasSubstr(R"("is_operator":true,"reason":"a member of the group gpu")"));
}

// The agent kills the processes of a slice, so an operator could kill any process by making it a slice's container.
TEST_F(RoutesTest, let_only_root_make_other_processes_part_of_a_slice) {
  const http::Caller member = ada.operating("a member of the group gpu");
  for (const char* target : {"/v1/slices/a/container", "/v1/slices/a/pods"}) {
    EXPECT_EQ(ask(member, "POST", target, R"({"pid":1,"id":"c"})").status, 403u) << target;
    EXPECT_NE(ask(the_operator, "POST", target, "{}").status, 403u) << target;
  }
}

TEST_F(RoutesTest, let_only_operators_change_limits_and_see_those_of_others) {
  agent.has_limits.items = {{{.user = "ada", .uid = 1000, .slices = 4}, {}},
                            {{.user = "bob", .uid = 2000}, {}}};
  const std::string change = R"({"limit":{"user":"*","slices":2}})";
  for (const http::Response& refused :
       {ask(ada, "PATCH", "/v1/limits", change), ask(ada, "DELETE", "/v1/limits/user:1000")}) {
    EXPECT_EQ(refused.status, 403u);
    EXPECT_THAT(body(refused), HasSubstr("only operators may change limits"));
  }
  EXPECT_THAT(agent.calls, IsEmpty());
  EXPECT_THAT(body(ask(ada, "GET", "/v1/limits")), AllOf(HasSubstr("ada"), Not(HasSubstr("bob"))));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/limits")), AllOf(HasSubstr("ada"), HasSubstr("bob")));
  const http::Caller member = ada.operating("a member of the group gpu");
  EXPECT_EQ(ask(member, "PATCH", "/v1/limits", change).status, 200u);
  EXPECT_EQ(ask(member, "DELETE", "/v1/limits/user:%2A").status, 200u);
  EXPECT_THAT(agent.calls, ElementsAre("set limit of * by uid 1000", "remove limit user:* by uid 1000"));
  EXPECT_EQ(ask(the_operator, "PATCH", "/v1/limits", R"({"limit":{"slices":-1}})").status, 400u);
}

TEST_F(RoutesTest, show_a_user_only_its_own_slices) {
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices")), HasSubstr("\"name\":\"a\""));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices")), Not(HasSubstr("\"name\":\"b\"")));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices")), HasSubstr("\"name\":\"b\""));
  for (const char* method : {"GET", "DELETE", "PATCH"}) {
    const http::Response response = ask(ada, method, "/v1/slices/b", "{}");
    EXPECT_EQ(response.status, 404u) << method;
    EXPECT_THAT(body(response), HasSubstr("there is no slice 'b'")) << method;
  }
  EXPECT_THAT(agent.calls, IsEmpty());
}

TEST_F(RoutesTest, allow_the_owner_to_change_and_stop_a_slice) {
  EXPECT_EQ(ask(ada, "PATCH", "/v1/slices/a", R"({"memory_bytes":2147483648,"share_bp":2000})").status, 200u);
  EXPECT_EQ(ask(ada, "DELETE", "/v1/slices/a").status, 200u);
  EXPECT_THAT(agent.calls, ElementsAre(HasSubstr("update 1 memory 2147483648 share 2000 by "),
                                       HasSubstr("stop 1: stopped by ")));
}

TEST_F(RoutesTest, limit_the_time_of_a_slice) {
  const auto limited = ask(ada, "POST", "/v1/slices/a/time-limit", R"({"seconds":60,"grace_seconds":5})");
  EXPECT_EQ(limited.status, 200u) << body(limited);
  EXPECT_THAT(body(limited), HasSubstr(R"("left_seconds":5)"));
  EXPECT_THAT(agent.calls, ElementsAre(HasSubstr("limit time of 1: 60 5 by ")));
  EXPECT_EQ(ask(ada, "POST", "/v1/slices/a/time-limit", R"({"seconds":-1})").status, 400u);
  EXPECT_EQ(ask(ada, "POST", "/v1/slices/a/time-limit", R"({"minutes":1})").status, 400u);
  EXPECT_EQ(ask(ada, "GET", "/v1/slices/nope/time-limit").status, 404u);
  EXPECT_EQ(agent.calls.size(), 1u);
}

TEST_F(RoutesTest, reject_a_supervisor_whose_request_cannot_be_read) {
  for (const char* text : {R"({"keeps":1})", R"({"kept":true})", "[]"})
    EXPECT_EQ(ask(ada, "POST", "/v1/slices/a/supervise", text).status, 400u) << text;
  EXPECT_THAT(agent.calls, IsEmpty());
}

TEST_F(RoutesTest, check_a_change_without_making_it) {
  EXPECT_EQ(ask(ada, "PATCH", "/v1/slices/a?dryRun=true", R"({"memory_bytes":2147483648})").status, 200u);
  EXPECT_THAT(agent.calls, ElementsAre(HasSubstr("check 1 memory 2147483648")));
  EXPECT_EQ(ask(ada, "PATCH", "/v1/slices/a?dryrun=true", "{}").status, 400u) << "must not become a change";
}

TEST_F(RoutesTest, reject_users_for_operations_of_operators) {
  const std::pair<const char*, const char*> rows[] = {{"PATCH", "/v1/node"},
                                                      {"POST", "/v1/slices/a/thaw"},
                                                      {"POST", "/v1/slices/a/container"},
                                                      {"POST", "/v1/slices/a/pods"}};
  for (const auto& [method, path] : rows)
    EXPECT_EQ(ask(ada, method, path, R"({"policy":"fixed-share","pid":5,"id":"c"})").status, 403u) << path;
  EXPECT_EQ(ask(ada, "POST", "/v1/slices", R"({"memory_bytes":1073741824,"owner_uid":2000})").status, 403u);
  EXPECT_THAT(agent.calls, IsEmpty());
}

TEST_F(RoutesTest, allow_a_process_inside_a_slice_only_to_enter_it_once) {
  agent.inside[here.pid] = 1;
  EXPECT_EQ(ask(the_operator, "GET", "/v1/slices").status, 403u);
  EXPECT_EQ(ask(the_operator, "POST", "/v1/slices/b/enter", "{}").status, 403u);
  EXPECT_THAT(body(ask(the_operator, "POST", "/v1/slices/a/enter", "{}")), Not(HasSubstr("runs in slice")));
  agent.living[0].entered = true;
  EXPECT_EQ(ask(the_operator, "POST", "/v1/slices/a/enter", "{}").status, 403u);
}

TEST_F(RoutesTest, keep_a_process_in_the_slice_in_which_it_connected) {
  const http::Caller connected = the_operator.inside("a");  // It is not in agent.inside any more.
  for (const auto& [method, path] : every_route())
    EXPECT_EQ(ask(connected, method, path, "{}").status, 403u) << method << " " << path;
  agent.inside[here.pid] = 2;
  EXPECT_EQ(ask(connected, "POST", "/v1/slices/b/enter", "{}").status, 403u);
  EXPECT_THAT(agent.calls, IsEmpty());
}

TEST_F(RoutesTest, all_reject_a_caller_that_has_ended) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto id = os::stat_of(child)->id;
  const http::Caller caller = http::Caller::user(os::Peer(id, os::open_process(id), 0), operator_uids);
  EXPECT_EQ(ask(caller, "GET", "/v1/slices").status, 200u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const auto& [method, path] : every_route()) {
    const http::Response response = ask(caller, method, path, "{}");
    EXPECT_EQ(response.status, 401u) << method << " " << path;
    EXPECT_TRUE(response.closes);
    EXPECT_THAT(body(response), HasSubstr("has ended; connect again"));
  }
  EXPECT_FALSE(caller.peer());
  EXPECT_THAT(agent.calls, IsEmpty());
}

// Every caller in this test is its own process, so it looks up its parent, which is in slice b.
TEST_F(RoutesTest, show_the_slice_of_a_process_to_operators_and_its_own_user) {
  const os::ProcessId parent = os::stat_of(getppid())->id;
  const auto path = [](const os::ProcessId& of) {
    return fmt::format("/v1/processes/{}?start={}", of.pid, of.start);
  };
  EXPECT_EQ(body(ask(the_operator, "GET", path(parent))), R"({"slice":""})");
  agent.inside[parent.pid] = 2;
  EXPECT_EQ(body(ask(the_operator, "GET", path(parent))), R"({"slice":"b"})");
  const http::Caller own = http::Caller::user(geteuid(), here, {});
  const http::Caller other = http::Caller::user(geteuid() + 1, here, {});
  EXPECT_EQ(ask(own, "GET", path(parent)).status, 200u);
  EXPECT_EQ(ask(other, "GET", path(parent)).status, 404u);
  EXPECT_EQ(ask(the_operator, "GET", path({parent.pid, parent.start + 1})).status, 404u);
  for (const char* wrong :
       {"x?start=1", "0?start=1", "4194305?start=1", "1?start=", "1", "1?begin=1", "-1?start=1"})
    EXPECT_EQ(ask(the_operator, "GET", std::string("/v1/processes/") + wrong).status, 400u) << wrong;
}

TEST_F(RoutesTest, pass_a_request_to_the_agent_with_owner_and_account) {
  const http::Response response =
      ask(the_operator, "POST", "/v1/slices",
          R"({"name":"c","memory_bytes":1073741824,"account":"ml","labels":{"k":"v"}})");
  EXPECT_EQ(response.status, 201u) << body(response);
  ASSERT_TRUE(agent.granted);
  EXPECT_EQ(agent.granted->account, "ml");
  EXPECT_EQ(agent.granted->owner, 0u);
  EXPECT_EQ(agent.granted->labels.at("k"), "v");
}

constexpr const char* for_a_pod =
    R"({"memory_bytes":1073741824,"lifetime":"explicit",)"
    R"("holder":{"pod":{"namespace":"a","name":"web-0","uid":"0b6c","container":"main"}}})";

TEST_F(RoutesTest, let_an_operator_create_a_slice_for_a_container_of_a_pod) {
  EXPECT_EQ(ask(the_operator, "POST", "/v1/slices", for_a_pod).status, 201u);
  ASSERT_TRUE(agent.granted);
  EXPECT_EQ(text(agent.granted->holder), "pod a/web-0, container main");
  const http::Response refused = ask(ada, "POST", "/v1/slices", for_a_pod);
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(body(refused), HasSubstr("leave out holder"));
  for (const char* wrong :
       {R"({"memory_bytes":1,"lifetime":"explicit","holder":{}})",
        R"({"memory_bytes":1048576,"lifetime":"explicit","holder":{"claim":"u","pod":{}}})",
        R"({"memory_bytes":1048576,"lifetime":"explicit","holder":{"pods":{}}})",
        R"({"memory_bytes":1048576,"holder":{"claim":"u"}})"})
    EXPECT_EQ(ask(the_operator, "POST", "/v1/slices", wrong).status, 400u) << wrong;
}

TEST_F(RoutesTest, show_the_pod_of_a_slice_in_documents_and_metrics) {
  agent.living[0].record.slice.holder.pod = PodContainer{"ns", "web-0", "0b6c", "main"};
  EXPECT_THAT(
      body(ask(the_operator, "GET", "/v1/slices/a")),
      HasSubstr(R"("holder":{"pod":{"namespace":"ns","name":"web-0","uid":"0b6c","container":"main"}})"));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices/b")), Not(HasSubstr("holder")));
  const std::string metrics = body(ask(the_operator, "GET", "/metrics"));
  EXPECT_THAT(metrics, HasSubstr(R"(namespace="ns",pod="web-0",container="main"} 1073741824)"));
  EXPECT_THAT(
      metrics,
      Not(HasSubstr(R"(slice="b",device="0",uuid="GPU-01000000-0000-0000-0000-000000000000",namespace)")));
}

// Slice a belongs to ada. It waited for b, which belongs to another user, and for an ended slice of ada's.
TEST_F(RoutesTest, hide_the_names_of_other_users_neighbours) {
  SliceCompute waits{.slice = agent.living[0].record.id};
  waits.waits_60s = {
      {.slice = 2, .waiting_ns = 500, .name = "b", .owner = agent.living[1].record.slice.owner},
      {.slice = 9, .waiting_ns = 300, .name = "c", .owner = agent.living[1].record.slice.owner},
      {.slice = 8, .waiting_ns = 700, .name = "old", .owner = agent.living[0].record.slice.owner}};
  agent.has_devices[0].compute = DeviceCompute{.arbitrated = true, .slices = {waits}};
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices/a")),
              HasSubstr(R"("waits_60s":[{"slice":"old","waiting_ns":700},{"slice":"b","waiting_ns":500},)"
                        R"({"slice":"c","waiting_ns":300}])"));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices/a")),
              HasSubstr(R"("waits_60s":[{"slice":"another user's slice","waiting_ns":800},)"
                        R"({"slice":"old","waiting_ns":700}])"));
}

TEST_F(RoutesTest, serve_openmetrics_on_request) {
  http::Request request{.method = "GET", .path = "/metrics"};
  const auto plain = answer_metrics(agent, request);
  EXPECT_EQ(plain.type, api::metrics_type(api::MetricsFormat::prometheus));
  EXPECT_THAT(body(plain), Not(HasSubstr("# EOF")));
  request.headers.add("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  for (const bool by_route : {false, true}) {
    const auto response = by_route ? routes.answer(request, the_operator) : answer_metrics(agent, request);
    EXPECT_EQ(response.type, api::metrics_type(api::MetricsFormat::openmetrics));
    EXPECT_TRUE(body(response).ends_with("# EOF\n"));
  }
}

TEST_F(RoutesTest, require_the_exact_name_of_a_slot_and_an_operator) {
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slots/s017")), HasSubstr(R"("host_path":"/attach/s017")"));
  EXPECT_EQ(ask(ada, "GET", "/v1/slots/s017").status, 403u);
  EXPECT_EQ(ask(the_operator, "GET", "/v1/slots/s17").status, 400u);
  EXPECT_EQ(ask(the_operator, "DELETE", "/v1/slots/s017").status, 200u);
  EXPECT_THAT(agent.calls, ElementsAre("withdraw s017"));
  EXPECT_EQ(ask(ada, "DELETE", "/v1/slots/s017").status, 403u);
  EXPECT_THAT(body(ask(the_operator, "DELETE", "/v1/slots/s17")), HasSubstr("slots are s000 to s255"));
  std::string with_slot = for_a_pod;
  with_slot.insert(1, R"("slot":"s300",)");
  EXPECT_THAT(body(ask(the_operator, "POST", "/v1/slices", with_slot)), HasSubstr("there is no slot 's300'"));
}

TEST_F(RoutesTest, list_the_slices_of_a_pod_by_its_uid) {
  agent.living[0].record.slice.holder.pod = PodContainer{"ns", "web-0", "0b6c", "main"};
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices?pod=0b6c")), HasSubstr(R"("name":"a")"));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices?all=true&pod=0b6c")),
              Not(HasSubstr(R"("name":"b")")));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/slices?pod=0b6")), HasSubstr(R"("slices":[])"));
  for (const char* query : {"pod=", "pods=x", "all=false", "all=true&&pod=0b6c", "&", "%"})
    EXPECT_EQ(ask(the_operator, "GET", std::string("/v1/slices?") + query).status, 400u) << query;
}

TEST_F(RoutesTest, release_a_slice_so_that_it_ends_when_empty) {
  EXPECT_EQ(ask(ada, "DELETE", "/v1/slices/a?when_empty=true").status, 200u);
  EXPECT_THAT(agent.calls, ElementsAre(HasSubstr("release 1: released by ")));
  EXPECT_EQ(ask(ada, "DELETE", "/v1/slices/a?when_empty=false").status, 400u);
}

TEST_F(RoutesTest, let_only_root_create_slices_if_kubernetes_manages_them) {
  agent.has_node.bookkeeper = Bookkeeper::kubernetes;
  const http::Response refused = ask(ada, "POST", "/v1/slices", R"({"memory_bytes":1073741824})");
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(body(refused), HasSubstr("only root may create them"));
  EXPECT_EQ(ask(the_operator, "POST", "/v1/slices", for_a_pod).status, 201u);
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/node")), HasSubstr(R"("bookkeeper":"kubernetes")"));
}

TEST_F(RoutesTest, show_what_enforces_memory_limits) {
  agent.has_node.guard.memory = {EnforcementLevel::kernel, "", {}};
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/node")),
              HasSubstr(R"("enforcement":{"level":"kernel","reason":"")"));
  EXPECT_THAT(body(ask(the_operator, "GET", "/metrics")),
              HasSubstr("\ncarve_node_enforcement{memory=\"kernel\"} 1\n"));
}

TEST_F(RoutesTest, list_the_reason_of_each_device_in_a_rejected_grant) {
  agent.refusal = Failure{FailureKind::insufficient_capacity, "no device has 4 GiB free"};
  agent.answer.verdicts = {{0, false, "1 GiB is free"}};
  const http::Response response =
      ask(the_operator, "POST", "/v1/slices", R"({"name":"c","memory_bytes":4294967296})");
  EXPECT_EQ(response.status, 409u) << body(response);
  EXPECT_THAT(body(response), HasSubstr("no device has 4 GiB free"));
  EXPECT_THAT(body(response), HasSubstr("device 0: 1 GiB is free"));
}

TEST_F(RoutesTest, list_the_callers_usage_records_in_pages_with_the_next_id) {
  for (uint64_t id = 1; id <= 3; ++id) {
    agent.usage.push_back(agent.living[0].record);
    agent.usage.back().id = id;
    agent.usage.back().slice.owner = id == 2 ? 2000 : 1000;
  }
  EXPECT_THAT(body(ask(ada, "GET", "/v1/usage?after=1")), HasSubstr("\"last\":3"));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/usage?after=0&limit=1")), HasSubstr("\"last\":1"));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/usage?ids=1")), HasSubstr("\"query\":\"ids=1\""));
  for (const char* bad :
       {"after=0&limit=0", "after=0&limit=1001", "after=0&limit=", "after=&limit=1", "limit=1"})
    EXPECT_EQ(ask(ada, "GET", std::string("/v1/usage?") + bad).status, 400u) << bad;
  EXPECT_THAT(body(ask(ada, "GET", "/v1/usage?after=1")), Not(HasSubstr("\"id\":2")));
  EXPECT_THAT(body(ask(bob, "GET", "/v1/usage?after=1")), HasSubstr("\"id\":2"));
  EXPECT_THAT(body(ask(bob, "GET", "/v1/usage?ids=1,2")),
              AllOf(HasSubstr("\"id\":2"), Not(HasSubstr("\"id\":1"))));
  for (const char* query : {"after=", "after=x", "after=1x", "before=3", "after=-1",
                            "after=99999999999999999999", "ids=", "ids=1,", "ids=1,x", "ids=,1"})
    EXPECT_EQ(ask(ada, "GET", std::string("/v1/usage?") + query).status, 400u) << query;
}

TEST_F(RoutesTest, show_an_ended_slice_until_another_one_takes_its_name) {
  SliceView over = agent.living[0];
  over.record.slice.name = "old";
  over.record.to = ledger::Stamp{5, "boot", 5};
  over.state = SliceState::ended;
  over.why = "its last process ended";
  over.parts.clear();
  agent.ended.push_back(over);
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices/old")), HasSubstr("its last process ended"));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices")), Not(HasSubstr("\"old\"")));
  EXPECT_THAT(body(ask(ada, "GET", "/v1/slices?all=true")), HasSubstr("\"old\""));
  EXPECT_EQ(ask(bob, "GET", "/v1/slices/old").status, 404u);
}

TEST_F(RoutesTest, hide_names_of_other_users_slices) {
  agent.has_devices[0].policy.desired = Policy::native_burst_share;
  agent.living[1].record.slice.exclusive = true;
  const std::string seen = body(ask(ada, "GET", "/v1/devices"));
  EXPECT_THAT(seen, HasSubstr("another user's slice"));
  EXPECT_THAT(seen, Not(HasSubstr("\"b\"")));
  EXPECT_THAT(body(ask(the_operator, "GET", "/v1/devices")), HasSubstr("\"b\""));
}

TEST_F(RoutesTest, decode_a_name_as_one_part_of_the_path) {
  EXPECT_EQ(ask(the_operator, "GET", "/v1/slices/%61").status, 200u);
  for (const auto& [path, message] : {std::pair("/v1/slices/a%20b", "there is no slice 'a b'"),
                                      {"/v1/slices/a%2Fthaw", "there is no slice 'a/thaw'"},
                                      {"/v1/slices/a%0Ab", "there is no /v1/slices/a%0Ab"},
                                      {"/v1/slices/a%00", "there is no /v1/slices/a%00"},
                                      {"/v1/slices/a%4", "there is no /v1/slices/a%4"}}) {
    const http::Response response = ask(the_operator, "GET", path);
    EXPECT_EQ(response.status, 404u) << path;
    EXPECT_THAT(body(response), HasSubstr(message));
  }
}

TEST_F(RoutesTest, distinguish_unknown_paths_and_methods) {
  EXPECT_EQ(ask(the_operator, "GET", "/v1/nothing").status, 404u);
  EXPECT_EQ(ask(the_operator, "PUT", "/v1/slices").status, 405u);
  EXPECT_EQ(ask(the_operator, "GET", "/v1/slices/a/b/c").status, 404u);
}

TEST_F(RoutesTest, serve_only_metrics_on_the_metrics_port) {
  http::Request request;
  request.method = "GET";
  for (const auto& [method, path] : every_route()) {
    request.method = method;
    request.path = path;
    EXPECT_EQ(answer_metrics(agent, request).status, path == "/metrics" ? 200u : 404u) << path;
  }
}

}  // namespace
}  // namespace carve::node
