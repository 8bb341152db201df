#include "controller/api/controller_routes.h"

#include <gmock/gmock.h>

#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint32_t operators[] = {0};

struct Prepared : Views {
  api::ControllerVersion version() const override {
    return {.program = "carve-controller", .version = "1.2.3", .pid = 7, .state = "/secret", .started_ns = 5};
  }
  api::KnownNodeList nodes() const override {
    return {.nodes = {{.name = "secret-a",
                       .socket = "/secret",
                       .reachability = Reachability::reachable,
                       .devices = {{.index = 1, .usable_bytes = 22, .free_bytes = 11}},
                       .slices = 3},
                      {.name = "secret-b",
                       .reachability = Reachability::unreachable,
                       .problem = "no agent listens at /secret"}}};
  }
} const views;

http::Response asked(const http::Caller& caller, std::string method, std::string path) {
  return answer(views, {.method = std::move(method), .path = std::move(path), .query = "", .body = ""},
                caller);
}

std::string body(const http::Response& response) { return std::get<std::string>(response.content); }

http::Caller user(uint32_t uid) { return http::Caller::user(uid, {5, 1}, operators); }

TEST(ControllerRoutes, an_anonymous_caller_gets_401_from_every_path_and_sees_nothing) {
  std::vector<std::pair<std::string, std::string>> all = {
      {"GET", "/v1/nothing"}, {"GET", "/"}, {"POST", "/v1/nodes"}};
  for (const Route& route : routes()) all.emplace_back(route.method, route.path);
  ASSERT_GE(all.size(), 5u);
  for (const auto& [method, path] : all) {
    const auto response = asked(http::Caller(), method, path);
    EXPECT_EQ(response.status, 401u) << method << " " << path;
    EXPECT_EQ(response.type, "application/problem+json");
    const auto problem = api::read<api::Problem>(body(response), api::Reading::strict);
    ASSERT_TRUE(problem) << problem.error();
    EXPECT_EQ(problem->type, "carve:unauthenticated");
    EXPECT_EQ(problem->status, 401u);
    EXPECT_THAT(body(response), Not(HasSubstr("secret")));
  }
}

TEST(ControllerRoutes, every_route_answers_an_identified_caller) {
  for (const uint32_t uid : {0u, 1000u})
    for (const Route& route : routes()) {
      const auto response = asked(user(uid), route.method, route.path);
      EXPECT_EQ(response.status, 200u) << route.path;
      EXPECT_EQ(response.type, "application/json");
    }
}

TEST(ControllerRoutes, the_nodes_have_their_devices_or_the_reason_why_there_are_none) {
  const auto nodes =
      api::read<api::KnownNodeList>(body(asked(user(1000), "GET", "/v1/nodes")), api::Reading::strict);
  ASSERT_TRUE(nodes) << nodes.error();
  EXPECT_EQ(api::write(*nodes), api::write(views.nodes()));
  EXPECT_THAT(body(asked(user(0), "GET", "/v1/nodes")), HasSubstr(R"("reachability":"unreachable")"));
  const auto version =
      api::read<api::ControllerVersion>(body(asked(user(0), "GET", "/v1/version")), api::Reading::strict);
  ASSERT_TRUE(version) << version.error();
  EXPECT_EQ(version->program, "carve-controller");
}

TEST(ControllerRoutes, what_there_is_not_is_named_with_what_there_is) {
  EXPECT_EQ(asked(user(0), "GET", "/v1/slices").status, 404u);
  EXPECT_THAT(body(asked(user(0), "GET", "/v1/slices")),
              HasSubstr("there is no /v1/slices; the controller has /v1/version, /v1/nodes"));
  EXPECT_EQ(asked(user(0), "DELETE", "/v1/nodes").status, 405u);
  EXPECT_THAT(body(asked(user(0), "DELETE", "/v1/nodes")), HasSubstr("/v1/nodes has no method DELETE"));
  EXPECT_LE(body(asked(user(0), "GET", "/" + std::string(5000, 'x'))).size(), 400u);
}

TEST(ControllerRoutes, bytes_that_are_no_request_are_refused_with_the_status_of_the_server) {
  EXPECT_EQ(refuse_bytes(431, "x").status, 431u);
  EXPECT_THAT(body(refuse_bytes(400, "x")), HasSubstr("carve:invalid-argument"));
  EXPECT_THAT(body(refuse_bytes(429, "x")), HasSubstr("carve:resource-exhausted"));
}

}  // namespace
}  // namespace carve::controller
