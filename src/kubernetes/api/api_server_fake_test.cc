// Tests the rules of the fake on which other programs' tests rely.
#include "kubernetes/api/testing/api_server_fake.h"

#include <gmock/gmock.h>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* pods_of_a = "/api/v1/namespaces/a/pods";

// A server and a client that waits for each response.
struct CalledServer {
  VirtualTime time;
  ApiServerFake server;
  SimulatedApiClient client{time, server, 1};

  ApiAnswer ask(const std::string& method, const std::string& target, const json& body = nullptr,
                const char* type = json_type) {
    ApiAnswer out{.status = 0, .body = "", .problem = "the call got no response"};
    const auto call = client.send(
        {.method = method, .target = target, .body = body.is_null() ? "" : body.dump(), .content_type = type},
        [&](const ApiAnswer& answer) { out = answer; });
    time.run_for(31 * second_ns);
    return out;
  }
  std::string uid_of(const std::string& pod) const {
    return (*server.find("/api/v1/pods", "a", pod))["metadata"]["uid"];
  }
};

json named(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

json binding(const std::string& uid, const char* node) {
  return {{"metadata", {{"name", "p"}, {"uid", uid}, {"annotations", {{"carve.dev/slices", "{}"}}}}},
          {"target", {{"kind", "Node"}, {"name", node}}}};
}

TEST(ApiServerFake, binds_a_pod_once_and_only_with_its_uid) {
  CalledServer a;
  ASSERT_EQ(a.ask("POST", pods_of_a, named("p")).status, 201u);
  const std::string target = std::string(pods_of_a) + "/p/binding?timeout=2s", uid = a.uid_of("p");
  EXPECT_EQ(a.ask("POST", target, binding("other", "n1")).status, 409u);
  EXPECT_FALSE(a.server.find("/api/v1/pods", "a", "p")->contains("spec"));
  size_t changes = 0;
  a.server.on_change = [&](const ApiServerFake::Change& change) {
    ++changes;
    EXPECT_EQ((*change.after)["spec"]["nodeName"], "n1");
    EXPECT_EQ((*change.after)["metadata"]["annotations"]["carve.dev/slices"], "{}");
  };
  EXPECT_EQ(a.ask("POST", target, binding(uid, "n1")).status, 201u);
  const ApiAnswer second = a.ask("POST", target, binding(uid, "n2"));
  EXPECT_EQ(second.status, 409u);
  EXPECT_TRUE(second.may_have_happened) << "the write may be the second attempt of one call";
  EXPECT_EQ(changes, 1u) << "the annotation and the node are set in one write";
}

TEST(ApiServerFake, a_response_that_is_lost_after_a_write_is_reported_as_missing) {
  CalledServer a;
  a.server.add_fault({.kind = ApiFault::Kind::lose_answer, .method = "POST"});
  const ApiAnswer answer = a.ask("POST", pods_of_a, named("p"));
  EXPECT_EQ(answer.status, 0u);
  EXPECT_TRUE(answer.may_have_happened);
  EXPECT_NE(a.server.find("/api/v1/pods", "a", "p"), nullptr);
  EXPECT_EQ(a.ask("POST", pods_of_a, named("p")).status, 409u);
}

TEST(ApiServerFake, unsupported_requests_are_reported) {
  CalledServer a;
  a.server.add_fault({.kind = ApiFault::Kind::hang});
  const ApiAnswer late = a.ask("POST", pods_of_a, named("p"));
  EXPECT_EQ(late.problem, "no response in time");
  EXPECT_TRUE(late.may_have_happened);
  a.client.set_connected(false);
  EXPECT_FALSE(a.ask("POST", pods_of_a, named("p")).may_have_happened);
  a.client.set_connected(true);
  a.server.required_token = "t";
  EXPECT_EQ(a.ask("GET", pods_of_a).status, 401u);
  a.client.token = "t";
  EXPECT_EQ(a.ask("GET", pods_of_a).status, 200u);
  EXPECT_FALSE(a.ask("PATCH", std::string(pods_of_a) + "/p", {{"a", 1}}, merge_patch_type).may_have_happened);
}

TEST(ApiServerFake, a_merge_patch_changes_only_the_named_fields) {
  CalledServer a;
  a.server.put("/api/v1/nodes", {{"metadata", {{"name", "n"}, {"labels", {{"a", "1"}, {"b", "2"}}}}},
                                 {"status", {{"phase", "x"}}}});
  const json patch = {{"metadata", {{"labels", {{"a", nullptr}, {"c", "3"}}}}}, {"status", {{"phase", "y"}}}};
  const json node = json::parse(a.ask("PATCH", "/api/v1/nodes/n", patch, merge_patch_type).body);
  EXPECT_EQ(node["metadata"]["labels"], json({{"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(node["status"]["phase"], "x") << "the status is a separate resource";
  const uint64_t version = a.server.version();
  EXPECT_EQ(
      json::parse(a.ask("PATCH", "/api/v1/nodes/n/status", patch, merge_patch_type).body)["status"]["phase"],
      "y");
  EXPECT_EQ(a.ask("PATCH", "/api/v1/nodes/n/status", patch, merge_patch_type).status, 200u);
  EXPECT_EQ(a.server.version(), version + 1) << "a patch without changes is not a write";
  const json stale = {{"metadata", {{"resourceVersion", std::to_string(version)}}}};
  EXPECT_EQ(a.ask("PATCH", "/api/v1/nodes/n", stale, merge_patch_type).status, 409u);
  EXPECT_EQ(a.ask("PATCH", "/api/v1/nodes/n", stale).status, 415u);
}

TEST(ApiServerFake, replaces_a_lease_only_if_the_version_matches) {
  CalledServer a;
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/s/leases";
  json lease = json::parse(a.ask("POST", leases, named("l")).body);
  EXPECT_EQ(lease["kind"], "Lease");
  EXPECT_EQ(lease["apiVersion"], "coordination.k8s.io/v1");
  lease["spec"]["holderIdentity"] = "n1_x";
  EXPECT_EQ(a.ask("PUT", leases + "/l", lease).status, 200u);
  lease["spec"]["holderIdentity"] = "n2_x";
  EXPECT_EQ(a.ask("PUT", leases + "/l", lease).status, 409u);
  EXPECT_EQ(json::parse(a.ask("GET", leases + "/l").body)["spec"]["holderIdentity"], "n1_x");
}

TEST(ApiServerFake, deletes_a_bound_pod_after_its_containers_have_ended) {
  CalledServer a;
  a.server.put("/api/v1/pods",
               {{"metadata", {{"name", "p"}, {"namespace", "a"}}}, {"spec", {{"nodeName", "n"}}}});
  const std::string pod = std::string(pods_of_a) + "/p";
  EXPECT_EQ(a.ask("DELETE", pod, {{"preconditions", {{"uid", "other"}}}}).status, 409u);
  EXPECT_EQ(a.ask("DELETE", pod).status, 200u);
  EXPECT_TRUE((*a.server.find("/api/v1/pods", "a", "p"))["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(a.ask("DELETE", pod, {{"gracePeriodSeconds", 0}}).status, 200u);
  EXPECT_EQ(a.ask("GET", pod).status, 404u);
}

TEST(ApiServerFake, reviews_tokens_and_access) {
  CalledServer a;
  a.server.token_users["good"] = {{"username", "prometheus"}};
  a.server.is_allowed = [](const json& spec) { return spec["user"] == "prometheus"; };
  const auto token = [&](const char* text) {
    return json::parse(
        a.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {{"spec", {{"token", text}}}}).body);
  };
  EXPECT_EQ(token("good")["status"]["user"]["username"], "prometheus");
  EXPECT_EQ(token("bad")["status"]["authenticated"], false);
  const auto allowed = [&](const char* user) {
    return json::parse(
        a.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {{"spec", {{"user", user}}}})
            .body);
  };
  EXPECT_EQ(allowed("prometheus")["status"]["allowed"], true);
  EXPECT_EQ(allowed("other")["status"]["allowed"], false);
}

TEST(ApiServerFake, all_pages_of_a_list_have_the_same_version) {
  CalledServer a;
  for (const char* name : {"p", "q", "r"}) a.server.put("/api/v1/nodes", named(name));
  const auto first = read_list_page(a.ask("GET", "/api/v1/nodes?limit=2").body);
  ASSERT_TRUE(first && first->items.size() == 2);
  a.server.put("/api/v1/nodes", named("s"));
  const auto second = read_list_page(a.ask("GET", "/api/v1/nodes?limit=2&continue=" + first->next).body);
  ASSERT_TRUE(second && second->items.size() == 1);
  EXPECT_EQ(second->resource_version, first->resource_version);
  EXPECT_EQ(second->next, "");
  const auto again = read_list_page(a.ask("GET", "/api/v1/nodes?limit=2").body);
  a.server.put("/api/v1/nodes", named("t"));
  a.server.compact();
  EXPECT_EQ(a.ask("GET", "/api/v1/nodes?limit=2&continue=" + again->next).status, 410u);
}

}  // namespace
}  // namespace carve::kubernetes
