// Failures at the API server or in the coordinator, as the whole coordinator handles them: rows of
// docs/kubernetes-node.md.
#include <gmock/gmock.h>

#include "kubernetes/coordinator/testing/coordinator_scenario.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using kubernetes::ApiFault;
using kubernetes::second_ns;
using ::testing::HasSubstr;

constexpr const char* bound_text = R"({"Error":""})";
constexpr const char* cached_pods = "status.phase";  // A part of the target of the cache's list and watch.

// Sends a bind request without waiting for its response.
void send_bind(CoordinatorScenario& s, const nlohmann::json& pod, Asker& asker) {
  s.filter(pod, {"n0"});
  const Json question{{"PodName", pod["metadata"]["name"].get<std::string>()},
                      {"PodNamespace", "a"},
                      {"PodUID", pod["metadata"]["uid"].get<std::string>()},
                      {"Node", "n0"}};
  http::Response response =
      s.coordinator->extender({.method = "POST", .path = "/bind", .query = "", .body = question.dump()});
  asker.subscription = std::get<http::LaterContent>(response.content).begin(asker);
}

// Kills the coordinator, which then sends no more responses, and starts another one.
void kill_and_start_again(CoordinatorScenario& s) {
  s.client.forget_calls();
  s.coordinator.reset();
  s.begin();
  s.time.run_for(10 * second_ns);
}

TEST(CoordinatorFailures, binds_while_it_lists_again) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto first = s.create_pod("first", 8_GiB);
  EXPECT_EQ(s.bind(first), bound_text);
  const size_t lists = s.coordinator->figures().relists["pods"];
  s.server.add_fault(
      {.kind = ApiFault::Kind::error_event, .method = "WATCH", .target = cached_pods, .status = 410});
  s.server.add_fault({.kind = ApiFault::Kind::hang, .method = "GET", .target = cached_pods});
  s.create_pod("any", 1_GiB);
  s.time.run_for(5 * second_ns);
  ASSERT_EQ(s.coordinator->figures().relists["pods"], lists + 1) << "the list has not been answered yet";
  EXPECT_EQ(s.ready(), "ok\n");
  EXPECT_EQ(s.bind(s.create_pod("second", 8_GiB)), bound_text);
  EXPECT_THAT(s.bind(s.create_pod("third", 8_GiB)), HasSubstr("no longer fits on node n0: memory"));
  s.server.remove(pods_path, "a", "first");
  s.time.run_for(60 * second_ns);
  EXPECT_EQ(s.bind(*s.server.find(pods_path, "a", "third")), bound_text)
      << "the deleted pod is gone from the cache, but the bound pods are not";
  EXPECT_THAT(s.bind(s.create_pod("fourth", 8_GiB)), HasSubstr("memory"));
}

TEST(CoordinatorFailures, a_crash_between_reservation_and_write_leaves_no_binding) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  s.server.add_fault({.kind = ApiFault::Kind::lose_request, .method = "POST", .target = "/binding"});
  Asker asker;
  send_bind(s, s.create_pod("first", 20_GiB), asker);
  kill_and_start_again(s);
  EXPECT_EQ(s.bind(s.create_pod("second", 20_GiB)), bound_text);
  EXPECT_FALSE((*s.server.find(pods_path, "a", "first"))["spec"].contains("nodeName"));
}

TEST(CoordinatorFailures, a_crash_after_the_write_keeps_the_binding) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  Asker asker;
  const auto first = s.create_pod("first", 20_GiB);
  send_bind(s, first, asker);
  kill_and_start_again(s);  // Requests that were already sent still arrive.
  ASSERT_EQ((*s.server.find(pods_path, "a", "first"))["spec"]["nodeName"], "n0");
  EXPECT_THAT(s.bind(s.create_pod("second", 20_GiB)), HasSubstr("no longer fits on node n0: memory"));
  EXPECT_EQ(s.bind(first), bound_text) << "the scheduler's second attempt";
}

TEST(CoordinatorFailures, binds_fail_within_2_s_without_an_api_server_and_then_immediately) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 4_GiB);
  s.time.run_for(second_ns);
  s.client.set_connected(false);
  Asker asker;
  send_bind(s, pod, asker);
  s.time.run_for(bind_deadline_ns);
  EXPECT_THAT(std::get<std::string>(asker.response.content), HasSubstr(R"({"Error":"carve: )"));
  asker.subscription.reset();
  s.time.run_for(15 * second_ns);
  EXPECT_THAT(s.filter(pod, {"n0"}), HasSubstr(R"("NodeNames":["n0"])")) << "the cache has not changed";
  EXPECT_THAT(s.bind(pod), HasSubstr("does not hold the Lease"));
  s.client.set_connected(true);
  s.time.run_for(60 * second_ns);
  EXPECT_EQ(s.bind(pod), bound_text);
}

TEST(CoordinatorFailures, a_pause_without_another_holder_needs_no_list) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto lists = [&] { return s.coordinator->figures().relists["pods"]; };
  const auto pause = [&] {
    s.is_renewed = false;
    s.time.run_for(20 * second_ns);
    EXPECT_FALSE(s.coordinator->is_active());
    s.is_renewed = true;
    s.time.run_for(10 * second_ns);
    EXPECT_TRUE(s.coordinator->is_active());
  };
  const auto before = lists();
  pause();
  EXPECT_EQ(lists(), before);
  s.acquire_time = "2026-01-01T00:01:00.000000Z";  // Another host may have held it in the meantime.
  pause();
  EXPECT_EQ(lists(), before + 1);
  s.acquire_time = "";
  pause();
  pause();
  EXPECT_EQ(lists(), before + 3) << "the pods are listed because their state is unknown";
}

TEST(CoordinatorFailures, a_deleted_node_stays_cached_until_its_last_pod_is_gone) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 20_GiB), next = s.create_pod("q", 20_GiB);
  EXPECT_EQ(s.bind(pod), bound_text);
  const nlohmann::json node = *s.server.find(nodes_path, "", "n0");
  s.server.remove(nodes_path, "", "n0");
  s.time.run_for(second_ns);
  EXPECT_THAT(s.filter(next, {"n0"}), HasSubstr("no agent"));
  s.server.put(nodes_path, node);
  s.time.run_for(second_ns);
  EXPECT_THAT(s.filter(next, {"n0"}), HasSubstr("memory")) << "the pod still has its slice";
  s.server.remove(pods_path, "a", "p");
  s.time.run_for(second_ns);
  EXPECT_THAT(s.filter(next, {"n0"}), HasSubstr(R"("NodeNames":["n0"])"));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
