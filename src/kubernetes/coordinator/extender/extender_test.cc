#include "kubernetes/coordinator/extender/extender.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* pods_path = "/api/v1/pods";

// Takes a response in place of a connection.
struct Asker final : http::LaterAnswer {
  std::string body;
  std::shared_ptr<void> subscription;

  void answer(http::Response response) override { body = std::get<std::string>(response.content); }
  void take(http::Response response) {
    if (const auto* later = std::get_if<http::LaterContent>(&response.content))
      subscription = later->begin(*this);
    else
      body = std::get<std::string>(response.content);
  }
};

struct Cluster {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 1};
  Cache cache{Strategy::binpack};
  Binder binder{client, cache};
  std::string fence, not_ready;
  bool preempts = false;
  std::vector<std::string> waiting, fitting, answered;
  Extender extender{
      cache,
      binder,
      {.fence = [this] { return fence; },
       .preempts = [this] { return preempts; },
       .not_ready = [this] { return not_ready; },
       .now = [this] { return client.now(); },
       .answered =
           [this](std::string_view verb, kubernetes::Nanoseconds, const std::string& error) {
             answered.push_back(std::string(verb) + (error.empty() ? "" : " refused"));
           },
       .fits = [this](const std::string& uid) { fitting.push_back(uid); },
       .waits =
           [this](const kubernetes::ObjectMeta& pod, std::span<const std::string_view>,
                  const std::function<std::string()>& why) { waiting.push_back(pod.name + ": " + why()); }}};

  explicit Cluster(unsigned nodes = 2) {
    for (unsigned n = 0; n < nodes; ++n)
      cache.set_node(node_object("n" + std::to_string(n), a10_devices(n, 1)));
  }
  // Returns the pod in the form in which the scheduler sends it.
  nlohmann::json create_pod(const std::string& name, const kubernetes::PodRequest& request) {
    server.put(pods_path, {{"metadata",
                            {{"name", name},
                             {"namespace", "a"},
                             {"annotations", nlohmann::json(pod_object(name, request).annotations)}}},
                           {"spec", nlohmann::json::object()},
                           {"status", {{"phase", "Pending"}}}});
    return *server.find(pods_path, "a", name);
  }
  nlohmann::json create_pod(const std::string& name, Bytes memory) {
    kubernetes::PodRequest request{.dialect = "carve"};
    request.containers["c"].amounts.memory_bytes = memory.count;
    return create_pod(name, request);
  }
  std::string ask(const std::string& path, const nlohmann::json& question) {
    Asker asker;
    asker.take(extender.handle({.method = "POST", .path = path, .query = "", .body = question.dump()}));
    time.run_for(10 * kubernetes::second_ns);
    return asker.body;
  }
  std::string filter(const nlohmann::json& pod, const std::vector<std::string>& nodes) {
    return ask("/filter", {{"Pod", pod}, {"NodeNames", nodes}});
  }
  std::string bind(const nlohmann::json& pod, const std::string& node) {
    return ask("/bind", {{"PodName", pod["metadata"]["name"]},
                         {"PodNamespace", "a"},
                         {"PodUID", pod["metadata"]["uid"]},
                         {"Node", node}});
  }
};

TEST(Extender, filters_scores_and_binds_a_pod) {
  Cluster cluster;
  const auto pod = cluster.create_pod("p", 20_GiB);
  EXPECT_THAT(cluster.filter(pod, {"n0", "n1", "other"}),
              HasSubstr(R"("NodeNames":["n0","n1"],"FailedNodes":{},)"
                        R"("FailedAndUnresolvableNodes":{"other":"carve: no agent"})"));
  EXPECT_THAT(cluster.ask("/prioritize", {{"Pod", pod}, {"NodeNames", {"n0", "n1"}}}),
              HasSubstr(R"({"Host":"n0","Score":10})"));
  EXPECT_EQ(cluster.bind(pod, "n0"), R"({"Error":""})");
  EXPECT_EQ((*cluster.server.find(pods_path, "a", "p"))["spec"]["nodeName"], "n0");
  const auto next = cluster.create_pod("q", 20_GiB);
  EXPECT_THAT(cluster.filter(next, {"n0", "n1"}), HasSubstr(R"("NodeNames":["n1"])"));
  EXPECT_THAT(cluster.bind(next, "n0"), HasSubstr("no longer fits on node n0: memory"));
  EXPECT_THAT(cluster.waiting, IsEmpty());
  EXPECT_THAT(cluster.answered, ElementsAre("filter", "prioritize", "bind", "filter", "bind refused"));
}

TEST(Extender, leaves_out_a_preemption_that_makes_no_room) {
  Cluster cluster;
  std::vector<std::string> uids;
  for (const char* node : {"n0", "n1"})
    for (const char* name : {"small", "large"}) {
      const auto pod =
          cluster.create_pod(std::string(name) + node, std::string(name) == "small" ? 4_GiB : 16_GiB);
      cluster.filter(pod, {node});
      ASSERT_EQ(cluster.bind(pod, node), R"({"Error":""})");
      uids.push_back(pod["metadata"]["uid"]);
    }
  const auto pod = cluster.create_pod("p", 12_GiB);
  const auto victims = [](const std::string& uid) {
    return nlohmann::json{{"Pods", {{{"UID", uid}}}}, {"NumPDBViolations", 0}};
  };
  const nlohmann::json question{
      {"Pod", pod}, {"NodeNameToMetaVictims", {{"n0", victims(uids[0])}, {"n1", victims(uids[3])}}}};
  const auto answer = nlohmann::json::parse(cluster.ask("/preempt", question))["NodeNameToMetaVictims"];
  EXPECT_EQ(answer, (nlohmann::json{{"n1", victims(uids[3])}}));
  EXPECT_EQ(device_uses(cluster.cache, "n1").front().memory, 20_GiB) << "nothing has changed";
  EXPECT_THAT(cluster.filter(pod, {"n0", "n1"}), HasSubstr(R"("NodeNames":[])"));
}

TEST(Extender, supports_preemption_from_kubernetes_1_38) {
  for (const auto& [minor, preempts] :
       std::map<unsigned, bool>{{30, false}, {37, false}, {38, true}, {40, true}})
    EXPECT_EQ(preempts_for_extenders({.major = 1, .minor = minor}), preempts) << minor;
  EXPECT_TRUE(preempts_for_extenders({.major = 2, .minor = 0}));
}

TEST(Extender, lists_nodes_where_preemption_helps_if_the_scheduler_supports_it) {
  Cluster cluster;
  const auto with_priority = [&](const std::string& name, int32_t priority) {
    kubernetes::PodRequest request{.dialect = "carve"};
    request.containers["c"].amounts.memory_bytes = (16_GiB).count;
    request.priority = priority;
    return cluster.create_pod(name, request);
  };
  const auto low = with_priority("low", 0), equal = with_priority("equal", 100);
  cluster.filter(low, {"n0"});
  ASSERT_EQ(cluster.bind(low, "n0"), R"({"Error":""})");
  cluster.filter(equal, {"n1"});
  ASSERT_EQ(cluster.bind(equal, "n1"), R"({"Error":""})");
  const auto high = with_priority("high", 100);
  cluster.cache.set_pod(*kubernetes::read_object(cluster.server.find(pods_path, "a", "low")->dump()));
  EXPECT_THAT(cluster.filter(high, {"n0", "n1"}), HasSubstr(R"("FailedNodes":{},)"));
  cluster.preempts = true;
  EXPECT_THAT(cluster.filter(high, {"n0", "n1"}),
              HasSubstr(R"("FailedNodes":{"n0":"carve: memory"},)"
                        R"("FailedAndUnresolvableNodes":{"n1":"carve: memory"})"));
  const nlohmann::json none{{"Pods", nullptr}, {"NumPDBViolations", 0}};
  const nlohmann::json question{{"Pod", high}, {"NodeNameToMetaVictims", {{"n0", none}, {"n1", none}}}};
  EXPECT_EQ(nlohmann::json::parse(cluster.ask("/preempt", question))["NodeNameToMetaVictims"].dump(),
            fmt::format(R"({{"n0":{{"NumPDBViolations":0,"Pods":[{{"UID":"{}"}}]}}}})",
                        low["metadata"]["uid"].get<std::string>()))
      << "victims are added to a candidate without any";
}

TEST(Extender, accepts_a_request_with_100000_names) {
  Cluster cluster;
  const auto pod = cluster.create_pod("p", 4_GiB);
  std::vector<std::string> names = {"n1"};
  for (int i = 0; i < 100'000; ++i) names.push_back(fmt::format("node-{:06}.a-name-of-the-usual-length", i));
  names.emplace_back("n0");
  names.emplace_back(253, 'x');
  const auto answer = nlohmann::json::parse(cluster.filter(pod, names));
  EXPECT_EQ(answer["NodeNames"].dump(), R"(["n1","n0"])");
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 100'001u);
}

TEST(Extender, reports_why_a_pod_waits) {
  Cluster cluster(1);
  const auto pod = cluster.create_pod("p", 23_GiB);
  EXPECT_THAT(cluster.filter(pod, {"n0"}), HasSubstr(R"("n0":"carve: too small")"));
  EXPECT_THAT(cluster.waiting, ElementsAre(HasSubstr("p: 0/1 nodes can serve: 1 too small")));
}

TEST(Extender, binds_only_inside_the_fence_and_with_a_complete_cache) {
  Cluster cluster;
  const auto pod = cluster.create_pod("p", 4_GiB);
  cluster.filter(pod, {"n0"});
  cluster.fence = "another coordinator holds the lease";
  EXPECT_EQ(cluster.bind(pod, "n0"), R"({"Error":"carve: another coordinator holds the lease"})");
  EXPECT_THAT(unconfirmed_pods(cluster.cache), IsEmpty());
  cluster.fence = "";
  cluster.not_ready = "the pods are not listed yet";
  EXPECT_EQ(cluster.bind(pod, "n0"), R"({"Error":"carve: the pods are not listed yet"})");
  EXPECT_EQ(cluster.filter(pod, {"n0"}), R"({"NodeNames":[],"Error":"carve: the pods are not listed yet"})");
  EXPECT_THAT(cluster.server.requests(), IsEmpty());
}

TEST(Extender, rejects_all_nodes_for_a_pod_that_the_webhook_has_not_processed) {
  Cluster cluster;
  EXPECT_EQ(cluster.filter({{"metadata", {{"name", "p"}, {"namespace", "a"}, {"uid", "u"}}}}, {"n0"}),
            R"({"NodeNames":[],"Error":"carve: pod a/p has no readable annotation carve.dev/request: )"
            R"(the webhook has not processed the pod"})");
}

TEST(Extender, continues_a_write_after_its_connection_closes) {
  Cluster cluster;
  const auto pod = cluster.create_pod("p", 4_GiB);
  cluster.filter(pod, {"n0"});
  {
    Asker asker;
    asker.take(cluster.extender.handle(
        {.method = "POST",
         .path = "/bind",
         .query = "",
         .body =
             nlohmann::json{
                 {"PodName", "p"}, {"PodNamespace", "a"}, {"PodUID", pod["metadata"]["uid"]}, {"Node", "n0"}}
                 .dump()}));
  }
  cluster.time.run_for(10 * kubernetes::second_ns);
  EXPECT_EQ((*cluster.server.find(pods_path, "a", "p"))["spec"]["nodeName"], "n0");
}

TEST(Extender, rejects_other_paths_methods_and_bodies) {
  Cluster cluster;
  EXPECT_EQ(cluster.extender.handle({.method = "GET", .path = "/filter", .query = "", .body = ""}).status,
            405u);
  EXPECT_EQ(cluster.extender.handle({.method = "POST", .path = "/", .query = "", .body = ""}).status, 404u);
  EXPECT_THAT(cluster.ask("/filter", "text"), HasSubstr(R"("Error":"carve: )"));
  EXPECT_THAT(cluster.ask("/bind", "text"), HasSubstr(R"("Error":"carve: )"));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
