#include "kubernetes/coordinator/extender/binder.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using kubernetes::ApiFault;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using FaultKind = ApiFault::Kind;

constexpr const char* stored_pods = "/api/v1/pods";

// A node with one device, and a waiting pod.
struct BindScenario {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 1};
  Cache cache{Strategy::binpack};
  Binder binder{client, cache};
  BindQuestion question{.name_space = "a", .pod = "p", .uid = "", .node = "n0"};
  std::vector<std::string> answers;

  BindScenario() {
    cache.set_node(node_object("n0", a10_devices(0, 1)));
    const kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
    server.put(
        stored_pods,
        {{"metadata", {{"name", "p"}, {"namespace", "a"}, {"annotations", nlohmann::json(pod.annotations)}}},
         {"spec", nlohmann::json::object()},
         {"status", {{"phase", "Pending"}}}});
    question.uid = stored()["metadata"]["uid"];
    kubernetes::ObjectMeta known = pod;
    known.uid = question.uid;
    cache.set_pod(known);
  }
  nlohmann::json stored() const {
    const auto* const pod = server.find(stored_pods, "a", "p");
    return pod == nullptr ? nlohmann::json() : *pod;
  }
  void bind(kubernetes::Nanoseconds wait = 30 * kubernetes::second_ns) {
    const auto slices = reserve_devices(cache, question.uid, question.node);
    ASSERT_TRUE(slices) << slices.error();
    binder.bind(question, *slices, [this](const std::string& error) { answers.push_back(error); });
    time.run_for(wait);
  }
  bool is_bound() const { return stored()["spec"].contains("nodeName"); }
  Bytes reserved_now() const { return device_uses(cache, "n0").front().memory; }
};

TEST(Binder, writes_the_node_and_the_slices_in_one_request) {
  BindScenario s;
  s.bind(kubernetes::second_ns);
  EXPECT_THAT(s.answers, ::testing::ElementsAre(""));
  EXPECT_EQ(s.stored()["spec"]["nodeName"], "n0");
  const auto slices =
      kubernetes::read_slices(s.stored()["metadata"]["annotations"]["carve.dev/slices"].get<std::string>());
  ASSERT_TRUE(slices) << slices.error();
  EXPECT_EQ(slices->containers.at("c").parts.front().memory, 4_GiB);
  EXPECT_EQ(s.binder.open(), 0u);
  EXPECT_THAT(s.server.requests().back(), HasSubstr("POST /api/v1/namespaces/a/pods/p/binding?timeout=1s"));
}

TEST(Binder, a_rejected_write_releases_the_reservation) {
  BindScenario s;
  s.server.add_fault({.kind = FaultKind::status, .method = "POST", .status = 403});
  s.bind();
  EXPECT_THAT(s.answers.at(0), HasSubstr("403"));
  EXPECT_EQ(s.reserved_now(), Bytes{});
  EXPECT_EQ(s.binder.open(), 0u);
}

TEST(Binder, recognizes_a_completed_write_whose_response_was_lost) {
  BindScenario s;
  s.server.add_fault({.kind = FaultKind::lose_answer, .method = "POST"});
  s.bind(bind_deadline_ns + kubernetes::second_ns);
  ASSERT_EQ(s.answers.size(), 1u);
  EXPECT_NE(s.answers.at(0), "") << "the outcome is not known yet";
  EXPECT_EQ(s.reserved_now(), 4_GiB);
  s.time.run_for(30 * kubernetes::second_ns);
  EXPECT_TRUE(s.is_bound());
  EXPECT_THAT(unconfirmed_pods(s.cache), IsEmpty());
  EXPECT_EQ(s.reserved_now(), 4_GiB);
}

TEST(Binder, a_second_attempt_finds_the_pod_bound_here) {
  BindScenario s;
  s.server.add_fault({.kind = FaultKind::lose_answer, .method = "POST"});
  s.bind(bind_deadline_ns + kubernetes::second_ns);
  s.bind(kubernetes::second_ns);
  ASSERT_EQ(s.answers.size(), 2u);
  EXPECT_EQ(s.answers.at(1), "");
  EXPECT_EQ(s.binder.open(), 0u);
}

TEST(Binder, a_rejection_of_the_second_attempt_does_not_release_the_first) {
  BindScenario s;
  s.server.add_fault({.kind = FaultKind::lose_answer, .method = "POST"});
  s.bind(bind_deadline_ns + kubernetes::second_ns);
  s.server.add_fault({.kind = FaultKind::status, .method = "POST", .status = 403});
  s.bind(kubernetes::second_ns);
  EXPECT_THAT(s.answers.at(1), HasSubstr("403"));
  EXPECT_EQ(s.reserved_now(), 4_GiB) << "the API server's predecessor may have carried out the write";
  s.time.run_for(30 * kubernetes::second_ns);
  EXPECT_TRUE(s.is_bound());
  EXPECT_EQ(s.reserved_now(), 4_GiB);
  EXPECT_EQ(s.binder.open(), 0u);
}

TEST(Binder, a_lost_request_is_released_when_it_can_no_longer_arrive) {
  BindScenario s;
  s.server.add_fault({.kind = FaultKind::hang, .method = "POST"});
  s.bind(bind_deadline_ns + kubernetes::second_ns);
  EXPECT_EQ(s.reserved_now(), 4_GiB);
  s.time.run_for(30 * kubernetes::second_ns);
  EXPECT_EQ(s.reserved_now(), Bytes{});
  EXPECT_EQ(s.binder.open(), 0u);
}

TEST(Binder, a_deleted_or_recreated_pod_releases_its_reservation) {
  for (const bool is_anew : {false, true}) {
    BindScenario s;
    const nlohmann::json old = s.stored();
    s.server.remove(stored_pods, "a", "p");
    if (is_anew) {
      nlohmann::json pod = old;
      pod["metadata"].erase("uid");
      s.server.put(stored_pods, pod);
    }
    s.bind();
    ASSERT_EQ(s.answers.size(), 1u);
    EXPECT_NE(s.answers.at(0), "");
    EXPECT_FALSE(s.is_bound());
    EXPECT_THAT(unconfirmed_pods(s.cache), IsEmpty());
    EXPECT_EQ(s.reserved_now(), Bytes{});
  }
}

TEST(Binder, reads_a_bound_pod_that_no_watch_shows) {
  for (const bool is_gone : {false, true}) {
    BindScenario s;
    s.bind(kubernetes::second_ns);
    EXPECT_THAT(s.answers, ::testing::ElementsAre(""));
    EXPECT_EQ(unconfirmed_pods(s.cache).size(), 1u);
    if (is_gone) s.server.remove(stored_pods, "a", "p");
    s.time.run_for(30 * kubernetes::second_ns);
    EXPECT_THAT(unconfirmed_pods(s.cache), IsEmpty());
    EXPECT_EQ(s.reserved_now(), is_gone ? Bytes{} : 4_GiB);
    EXPECT_EQ(s.answers.size(), 1u);
  }
}

TEST(Binder, retries_an_unreachable_api_server_until_it_responds) {
  BindScenario s;
  s.client.set_connected(false);
  s.bind(60 * kubernetes::second_ns);
  EXPECT_FALSE(s.is_bound());
  s.client.set_connected(true);
  s.time.run_for(60 * kubernetes::second_ns);
  EXPECT_THAT(unconfirmed_pods(s.cache), IsEmpty());
  EXPECT_EQ(s.reserved_now(), Bytes{});
}

TEST(Binder, does_not_send_names_that_would_change_the_path) {
  BindScenario s;
  s.question.pod = "../p";
  s.bind();
  EXPECT_EQ(s.answers.at(0), "the pod's name or namespace is not valid");
  EXPECT_THAT(s.server.requests(), IsEmpty());
  EXPECT_EQ(s.reserved_now(), Bytes{});
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
