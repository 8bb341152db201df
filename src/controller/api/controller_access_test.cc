// Tests the access rights of each kind of caller.
#include <gmock/gmock.h>

#include "controller/api/testing/controller_api.h"
#include "objects/service_object.h"
#include "wire/api/identity.h"
#include "wire/api/json.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ControllerAccess, an_anonymous_caller_gets_401_from_every_path_and_no_data) {
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

TEST(ControllerAccess, an_identified_caller_sees_the_nodes) {
  for (const uint32_t uid : {0u, 1000u})
    for (const char* path : {"/v1/version", "/v1/nodes", "/v1/services"}) {
      const auto response = asked(user(uid), "GET", path);
      EXPECT_EQ(response.status, 200u) << path;
      EXPECT_EQ(response.type, "application/json");
    }
}

TEST(ControllerAccess, another_user_may_neither_read_secrets_nor_change_objects) {
  Api api;
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  const auto before = api.objects.find({.name = "a"});
  EXPECT_THAT(body(api.ask(user(1001), "GET", "/v1/services/a")), Not(HasSubstr("secret")));
  EXPECT_THAT(body(api.ask(user(1001), "GET", "/v1/services")), Not(HasSubstr("secret")));
  const std::pair<const char*, const char*> changes[] = {
      {"PUT", "/v1/services/a"},        {"PATCH", "/v1/services/a"},     {"DELETE", "/v1/services/a"},
      {"POST", "/v1/services/a/start"}, {"POST", "/v1/services/a/stop"}, {"POST", "/v1/documents"},
      {"POST", "/v1/services/a/undo"}};
  for (const auto& [method, path] : changes) {
    const auto refused = api.ask(user(1001), method, path,
                                 std::string(method) == "PATCH" ? R"({"spec":{"replicas":3}})" : service);
    EXPECT_EQ(refused.status, 403u) << method << " " << path << body(refused);
  }
  EXPECT_EQ(api.ask(user(1001), "GET", "/v1/services/a/logs").status, 403u);
  EXPECT_EQ(api.ask(user(1001), "GET", "/v1/tokens").status, 403u);
  EXPECT_EQ(api.ask(user(1001), "POST", "/v1/tokens", R"({"name":"x"})").status, 403u);
  EXPECT_EQ(*api.objects.find({.name = "a"}), *before);
  EXPECT_EQ(api.ask(user(0), "PATCH", "/v1/services/a", R"({"spec":{"replicas":3}})").status, 200u)
      << "operators are allowed";
}

TEST(ControllerAccess, a_token_gives_its_role_and_a_viewer_may_not_change_objects) {
  Api api;
  const auto with = [&](const std::string& token) {
    http::Headers headers;
    headers.add("Authorization", "Bearer " + token);
    return headers;
  };
  const auto token = [&](const std::string& role) {
    const auto made = api.ask(user(0), "POST", "/v1/tokens",
                              fmt::format(R"({{"name":"{0}","role":"{0}","account":"research"}})", role));
    EXPECT_EQ(made.status, 201u) << body(made);
    return api::read<api::TokenMade>(body(made), api::Reading::strict)->token;
  };
  const std::string writes = token("user"), views_only = token("viewer");
  const http::Caller remote = http::Caller::remote("127.0.0.1:5000");
  EXPECT_EQ(api.ask(remote, "GET", "/v1/services").status, 401u);
  EXPECT_EQ(api.ask(remote, "POST", "/v1/documents", service, with(views_only)).status, 403u);
  ASSERT_EQ(api.ask(remote, "POST", "/v1/documents", service, with(writes)).status, 201u);
  EXPECT_EQ(api.objects.find({.name = "a"})->owner_uid, 2000u)
      << "its programs run as the user of the account";
  const auto seen = api.ask(remote, "GET", "/v1/services/a", "", with(views_only));
  EXPECT_EQ(seen.status, 200u);
  EXPECT_THAT(body(seen), Not(HasSubstr("secret")));
  EXPECT_EQ(api.ask(remote, "GET", "/v1/services/a/logs", "", with(views_only)).status, 403u);
  EXPECT_EQ(api.ask(remote, "GET", "/v1/services/a/logs", "", with(writes)).status, 200u);
  const auto refused = api.ask(remote, "DELETE", "/v1/services/a", "", with(views_only));
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(body(refused), HasSubstr("account research may view objects but not change them"));
  EXPECT_EQ(api.ask(remote, "GET", "/v1/tokens", "", with(writes)).status, 403u);
  EXPECT_EQ(api.ask(user(0), "DELETE", "/v1/tokens/user").status, 200u);
  EXPECT_EQ(api.ask(remote, "GET", "/v1/services", "", with(writes)).status, 401u);
  EXPECT_EQ(api.ask(user(0), "POST", "/v1/tokens", R"({"name":"y","role":"user","account":"none"})").status,
            409u);
}

// Returns the response to GET /v1/access.
api::Access access(Api& api, const http::Caller& caller, const std::string& query) {
  const auto response = api.ask(caller, "GET", "/v1/access?" + query);
  EXPECT_EQ(response.status, 200u) << body(response);
  return api::read<api::Access>(body(response), api::Reading::strict).value_or(api::Access{});
}

// The answer of /v1/access must be that of the requests themselves: for each role and kind, a document of the kind is
// rejected with 403 if and only if the caller may not create objects of the kind.
TEST(ControllerAccess, the_access_route_agrees_with_the_requests) {
  Api api;
  const std::pair<const char*, const char*> documents[] = {
      {"services", service},
      {"queues", R"({"apiVersion":"carve.dev/v1","kind":"Queue","metadata":{"name":"q"},"spec":{}})"},
      {"pools", R"({"apiVersion":"carve.dev/v1","kind":"Pool","metadata":{"name":"p"},"spec":{}})"}};
  const http::Caller callers[] = {user(0), user(1000), http::Caller::token("research", http::Role::viewer),
                                  http::Caller::token("research", http::Role::user),
                                  http::Caller::token("research", http::Role::operate)};
  unsigned refused = 0;
  for (const http::Caller& caller : callers)
    for (const auto& [kind, document] : documents) {
      const api::Access may = access(api, caller, fmt::format("verb=create&kind={}", kind));
      const auto response = api.ask(caller, "POST", fmt::format("/v1/{}?dryRun=true", kind), document);
      EXPECT_EQ(!may.is_allowed, response.status == 403u) << caller.text() << " " << kind << body(response);
      EXPECT_EQ(may.reason.empty(), may.is_allowed);
      refused += !may.is_allowed;
    }
  EXPECT_EQ(refused, 7u) << "of a viewer all kinds, and of two users all kinds but services";
  EXPECT_EQ(access(api, user(0), "verb=delete&kind=queue").objects, "all");
  EXPECT_EQ(access(api, user(1000), "verb=delete&kind=svc").objects, "own");
  EXPECT_THAT(access(api, user(1000), "verb=delete&kind=queue").reason,
              HasSubstr("only operators may change queues"));
}

TEST(ControllerAccess, the_access_route_knows_the_owner_of_an_object) {
  Api api;
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", service).status, 201u);
  EXPECT_EQ(access(api, user(1000), "verb=delete&kind=services&name=a").objects, "a");
  EXPECT_THAT(access(api, user(1001), "verb=delete&kind=services&name=a").reason,
              HasSubstr("belongs to another user"));
  EXPECT_TRUE(access(api, user(1001), "verb=get&kind=services&name=a").is_allowed);
  EXPECT_TRUE(access(api, user(1001), "verb=create&kind=services&name=b").is_allowed);
  for (const char* wrong :
       {"verb=fly&kind=services", "verb=get&kind=x", "verb=get", "kind=services", "verb=get&kin=x"})
    EXPECT_EQ(api.ask(user(0), "GET", std::string("/v1/access?") + wrong).status, 400u) << wrong;
}

TEST(ControllerAccess, callers_see_their_own_audit_entries_and_operators_all) {
  Api api;
  api.views.audit.items = {
      {.time_ns = 1, .caller = "uid 1000", .verb = "POST", .object = "/v1/documents"},
      {.time_ns = 2, .caller = "uid 1001", .verb = "DELETE", .object = "/v1/services/a"}};
  const auto count = [&](const http::Caller& caller) {
    return api::read<api::AuditList>(body(api.ask(caller, "GET", "/v1/audit")), api::Reading::strict)
        ->items.size();
  };
  EXPECT_EQ(count(user(0)), 2u);
  EXPECT_EQ(count(user(1001)), 1u);
  EXPECT_EQ(count(http::Caller::token("research", http::Role::user)), 0u);
}

TEST(ControllerAccess, every_change_is_audited_with_its_caller_even_if_rejected) {
  Api api;
  api.ask(user(1000), "POST", "/v1/documents", service);
  api.ask(user(1001), "DELETE", "/v1/services/a");
  api.ask(http::Caller::remote("10.0.0.1:7"), "DELETE", "/v1/services/a");
  api.ask(user(1000), "GET", "/v1/services/a");
  std::vector<std::string> lines;
  for (const AuditLine& l : api.audited)
    lines.push_back(fmt::format("{} {} {} {}", l.caller, l.address, l.change, l.status));
  EXPECT_THAT(lines, testing::ElementsAre("uid 1000 unix POST /v1/documents 201",
                                          "uid 1001 unix DELETE /v1/services/a 403",
                                          "anonymous 10.0.0.1:7 DELETE /v1/services/a 401"));
}

TEST(ControllerAccess, ten_wrong_tokens_block_the_address) {
  Api api;
  http::Headers headers;
  headers.add("Authorization", "Bearer carve_wrong");
  for (unsigned i = 0; i < WrongTokens::max_attempts; ++i)
    EXPECT_EQ(api.ask(http::Caller::remote("10.0.0.1:1"), "GET", "/v1/services", "", headers).status, 401u);
  EXPECT_EQ(api.ask(http::Caller::remote("10.0.0.1:2"), "GET", "/v1/services", "", headers).status, 429u);
  EXPECT_EQ(api.ask(http::Caller::remote("10.0.0.2:2"), "GET", "/v1/services", "", headers).status, 401u);
}

TEST(ControllerAccess, wrong_tokens_of_one_user_do_not_block_other_users_of_the_machine) {
  Api api;
  http::Headers headers;
  headers.add("Authorization", "Bearer carve_wrong");
  const auto status = [&](std::optional<uint32_t> uid) {
    return api.ask(http::Caller::remote("127.0.0.1:1", uid), "GET", "/v1/services", "", headers).status;
  };
  for (unsigned i = 0; i < WrongTokens::max_attempts; ++i) EXPECT_EQ(status(1000), 401u);
  EXPECT_EQ(status(1000), 429u);
  EXPECT_EQ(status(1001), 401u);
  EXPECT_EQ(status({}), 401u) << "a socket that is closed, or in another network namespace";
  const http::Caller local = http::Caller::remote("127.0.0.1:1", 0);
  EXPECT_TRUE(local.anonymous() && !local.uid() && !local.may_operate()) << "a uid over TCP gives no right";
}

TEST(ControllerAccess, a_caller_without_rights_to_an_object_does_not_get_the_errors_of_its_document) {
  Api api;
  const char* eas = R"({"metadata":{"name":"a"},"containers":[{"script":"login --password secret"}]})";
  ASSERT_EQ(api.ask(user(1000), "POST", "/v1/documents", eas).status, 201u);
  const auto modified = [&](uint32_t uid) {
    return api.ask(user(uid), "POST", "/v1/services/a/modify",
                   R"({"changes":["containers[0].command=serve"]})");
  };
  EXPECT_EQ(modified(1000).status, 422u);
  EXPECT_THAT(body(modified(1000)), HasSubstr("secret")) << "its owner sees the script";
  EXPECT_EQ(modified(1001).status, 403u);
  EXPECT_EQ(api.ask(user(1001), "PATCH", "/v1/services/a", R"({"spec":{"replicas":65}})").status, 403u);
  EXPECT_EQ(api.ask(user(1000), "PATCH", "/v1/services/a", R"({"spec":{"replicas":65}})").status, 422u);
}

TEST(ControllerAccess, only_root_may_create_tokens_whose_programs_run_as_root) {
  Api api;
  const auto made =
      api.ask(user(0), "POST", "/v1/tokens", R"({"name":"ops","role":"operator","account":"research"})");
  ASSERT_EQ(made.status, 201u);
  http::Headers headers;
  headers.add("Authorization",
              "Bearer " + api::read<api::TokenMade>(body(made), api::Reading::strict)->token);
  const http::Caller remote = http::Caller::remote("127.0.0.1:5000");
  const auto post = [&](const char* account) {
    return api.ask(remote, "POST", "/v1/tokens",
                   fmt::format(R"({{"name":"t","role":"user","account":"{}"}})", account), headers);
  };
  EXPECT_EQ(post("root").status, 403u);
  EXPECT_EQ(post("research").status, 201u);
  EXPECT_EQ(api.ask(user(0), "POST", "/v1/tokens", R"({"name":"r","role":"user","account":"root"})").status,
            201u);
}

TEST(ControllerAccess, a_forged_host_or_origin_over_tcp_is_rejected_before_the_token_is_checked) {
  Api api;
  const auto ask = [&](const char* name, const char* value, const http::Caller& caller) {
    http::Headers headers;
    headers.add(name, value);
    return api.ask(caller, "GET", "/v1/version", "", headers);
  };
  const auto remote = http::Caller::remote("127.0.0.1:5");
  for (const auto& [name, value] :
       {std::pair("Host", "evil.example"), std::pair("Origin", "http://evil.example")}) {
    const auto refused = ask(name, value, remote);
    EXPECT_EQ(refused.status, 403u);
    EXPECT_THAT(body(refused), HasSubstr("carve:permission-denied"));
    EXPECT_EQ(ask(name, value, user(1000)).status, 200u) << "a unix socket has no host";
  }
  EXPECT_EQ(ask("Host", "localhost", remote).status, 401u);
}

}  // namespace
}  // namespace carve::controller
