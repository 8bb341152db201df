#include "kubernetes/coordinator/retry_writer.h"

#include <gmock/gmock.h>

#include "kubernetes/coordinator/testing/coordinator_scenario.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using kubernetes::second_ns;
using ::testing::HasSubstr;

// The scheduler sees that a pod is gone and calls the extender for the waiting pod while the cache still has
// the old state. No later change of the cluster makes the scheduler retry.
TEST(RetryWriter, a_pod_that_an_outdated_cache_rejected_is_retried) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.bind(s.create_pod("first", 20_GiB)), R"({"Error":""})");
  const auto pod = s.create_pod("second", 20_GiB);
  const auto writes = [&] {
    return std::ranges::count(s.server.requests(), "PATCH /api/v1/namespaces/a/pods/second/status");
  };
  s.bind(pod);
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(writes(), 0) << "the pod does not fit";
  s.server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .method = "WATCH", .target = "pods"});
  s.server.remove(pods_path, "a", "first");
  EXPECT_THAT(s.bind(pod), HasSubstr("no longer fits on node n0: memory"));
  s.server.release_late();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(writes(), 1);
  EXPECT_EQ((*s.server.find(pods_path, "a", "second"))["metadata"]["labels"]["carve.dev/retry"], "1");
  EXPECT_EQ(s.bind(pod), R"({"Error":""})");
}

// The scheduler sends only the nodes that match the pod's selector.
TEST(RetryWriter, a_pod_is_retried_if_a_node_in_the_request_has_room) {
  CoordinatorScenario s;
  const kubernetes::ObjectMeta other = node_object("n1", a10_devices(1, 1));
  s.server.put(nodes_path, {{"metadata",
                             {{"name", "n1"},
                              {"labels", {{"carve.dev/node", "extender"}}},
                              {"annotations", nlohmann::json(other.annotations)}}}});
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.bind(s.create_pod("first", 20_GiB), "n1"), R"({"Error":""})");
  const auto pod = s.create_pod("p", 20_GiB);
  const auto writes = [&] {
    return std::ranges::count(s.server.requests(), "PATCH /api/v1/namespaces/a/pods/p/status");
  };
  s.filter(pod, {"n1"});
  s.time.run_for(600 * second_ns);
  EXPECT_EQ(writes(), 0) << "n0 has room, but was not in the request";
  s.filter(pod, {"n1"});
  s.server.remove(pods_path, "a", "first");
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(writes(), 1);
}

TEST(RetryWriter, a_pod_is_retried_until_the_scheduler_has_considered_all_nodes) {
  CoordinatorScenario s;
  std::vector<std::string> sample;
  for (unsigned n = 1; n < 3 * min_sampled_nodes; ++n) {
    const std::string name = fmt::format("small-{}", n);
    const kubernetes::ObjectMeta node = node_object(name, a10_devices(n, 1, 4_GiB));
    s.server.put(nodes_path, {{"metadata",
                               {{"name", name},
                                {"labels", {{"carve.dev/node", "extender"}}},
                                {"annotations", nlohmann::json(node.annotations)}}}});
    if (n <= min_sampled_nodes) sample.push_back(name);
  }
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 20_GiB);
  for (int refusals = 0; refusals < 10; ++refusals) {
    s.filter(pod, sample);
    s.time.run_for(7 * second_ns / 2);
  }
  EXPECT_EQ(std::ranges::count(s.server.requests(), "PATCH /api/v1/namespaces/a/pods/p/status"), 3)
      << "300 nodes in samples of 100";
}

// The scheduler may not have checked the node with room, and may miss it again.
TEST(RetryWriter, a_pod_that_is_rejected_again_is_retried_less_and_less_often) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 20_GiB);
  std::vector<std::string> sample;
  for (size_t i = 0; i < min_sampled_nodes; ++i) sample.push_back(fmt::format("full-{}", i));
  for (size_t refusals = 0; refusals < 600; ++refusals) {
    s.filter(pod, sample);
    s.time.run_for(second_ns);
    if (refusals % 10 == 0) s.time.run_for(20 * second_ns);
  }
  const auto writes = std::ranges::count(s.server.requests(), "PATCH /api/v1/namespaces/a/pods/p/status");
  EXPECT_GE(writes, 3);
  EXPECT_LE(writes, 6);
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
