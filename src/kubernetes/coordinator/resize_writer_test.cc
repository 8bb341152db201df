#include "kubernetes/coordinator/resize_writer.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/api/watched_objects.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using kubernetes::second_ns;
using ::testing::HasSubstr;

constexpr const char* resized_pods = "/api/v1/pods";
constexpr const char* written_events = "/apis/events.k8s.io/v1/events";

// A pod with 4 GiB on a device of 22731 MiB, and the watch that delivers the pod.
struct ResizeScenario {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 1};
  Cache cache{Strategy::binpack};
  EventWriter events{client, "h1", [] { return int64_t{0}; }};
  std::string fence;
  ResizeWriter resizes{client, cache, events, [this] { return fence; }};
  kubernetes::ObjectWatch pods{client,
                               {.path = resized_pods, .label_selector = "", .field_selector = ""},
                               {.replaced =
                                    [this](kubernetes::ObjectsByUid by_uid) {
                                      resizes.listed(by_uid);
                                      cache.replace_pods(std::move(by_uid));
                                    },
                                .changed =
                                    [this](const kubernetes::ObjectMeta& pod) {
                                      cache.set_pod(pod);
                                      resizes.consider(pod);
                                    },
                                .removed =
                                    [this](const kubernetes::ObjectMeta& pod) {
                                      cache.remove_pod(pod.uid);
                                      resizes.forget(pod.uid);
                                    }},
                               1};

  explicit ResizeScenario(bool is_placed = true) {
    cache.set_node(node_object("n0", a10_devices(0, 1)));
    kubernetes::PodSlices slices{.node = "n0"};
    slices.containers["c"].parts = {{device_uuid(0, 0), 4_GiB, {}}};
    kubernetes::ObjectMeta pod = pod_object("p", 4_GiB);
    if (is_placed) pod = bound(pod, slices);
    server.put(
        resized_pods,
        {{"metadata", {{"name", "p"}, {"namespace", "a"}, {"annotations", nlohmann::json(pod.annotations)}}},
         {"spec", {{"nodeName", "n0"}}},
         {"status", {{"phase", "Running"}}}});
    time.run_for(5 * second_ns);
  }
  nlohmann::json annotations() { return (*server.find(resized_pods, "a", "p"))["metadata"]["annotations"]; }
  void resize(const std::string& text) {
    nlohmann::json pod = *server.find(resized_pods, "a", "p");
    pod["metadata"]["annotations"]["carve.dev/resize"] = text;
    server.put(resized_pods, pod);
    time.run_for(10 * second_ns);
  }
  void resize(Bytes memory) {
    resize(fmt::format(R"({{"v":1,"containers":{{"c":{{"memory":{}}}}}}})", memory.count));
  }
  Bytes written() {
    const auto slices = kubernetes::read_slices(annotations()["carve.dev/slices"].get<std::string>());
    return slices->containers.at("c").parts.front().memory;
  }
  // Writes the agent's report that the slice was changed to this amount of memory.
  void node_reports(Bytes memory, const std::string& refusal = "") {
    kubernetes::ObjectMeta node = node_object("n0", a10_devices(0, 1));
    const std::string uid = (*server.find(resized_pods, "a", "p"))["metadata"]["uid"];
    node.annotations[kubernetes::ledger_annotation] = api::write(kubernetes::NodeLedger{
        .results = {{.uid = uid, .container = "c", .memory = memory.count, .refusal = refusal}}});
    resizes.node_seen(node);
    time.run_for(10 * second_ns);
  }
  bool is_changing() {
    return annotations()["carve.dev/slices"].get<std::string>().find("memory_before") != std::string::npos;
  }
  Bytes reserved_now() { return device_uses(cache, "n0").front().memory; }
  std::vector<std::string> notes() {
    std::vector<std::string> out;
    for (const nlohmann::json& event : server.all(written_events))
      out.push_back(event["reason"].get<std::string>() + ": " + event["note"].get<std::string>());
    return out;
  }
};

TEST(ResizeWriter, a_resize_writes_the_new_amounts_and_an_event) {
  ResizeScenario s;
  s.resize(6_GiB);
  EXPECT_EQ(s.written(), 6_GiB);
  EXPECT_EQ(s.reserved_now(), 6_GiB);
  EXPECT_FALSE(s.annotations().contains("carve.dev/resize"));
  EXPECT_THAT(s.notes(), ::testing::IsEmpty());
  s.node_reports(6_GiB);
  EXPECT_FALSE(s.is_changing());
  EXPECT_THAT(s.notes(),
              ::testing::ElementsAre(
                  "CarveSliceChanged: container c: 6 GiB instead of 4 GiB; the scheduler and quotas "
                  "still count the pod's limits"));
  s.resize(1_GiB);
  EXPECT_EQ(s.written(), 1_GiB);
  EXPECT_EQ(s.reserved_now(), 6_GiB) << "the node has not shrunk it yet";
  s.node_reports(1_GiB);
  EXPECT_EQ(s.reserved_now(), 1_GiB);
}

TEST(ResizeWriter, a_change_that_the_node_rejects_is_reverted) {
  ResizeScenario s;
  s.resize(10_MiB);
  s.node_reports(20_MiB, "result of another change");
  EXPECT_TRUE(s.is_changing());
  s.node_reports(10_MiB, "container c: less than the 256 MiB that one context takes");
  EXPECT_FALSE(s.is_changing());
  EXPECT_EQ(s.written(), 4_GiB);
  EXPECT_EQ(s.reserved_now(), 4_GiB);
  EXPECT_THAT(s.notes(), ::testing::ElementsAre(
                             "CarveRefused: container c: less than the 256 MiB that one context takes"));
  s.resize(5_GiB);
  s.node_reports(5_GiB);
  EXPECT_EQ(s.written(), 5_GiB) << "the change can be reverted";
}

// The result may arrive before the pod's newest object, or before the coordinator starts.
TEST(ResizeWriter, a_change_ends_after_a_restart_but_waits_outside_the_fence) {
  ResizeScenario s;
  s.resize(1_GiB);
  s.fence = "another coordinator holds the lease";
  s.node_reports(1_GiB);
  EXPECT_TRUE(s.is_changing());
  s.resizes.listed({});
  const kubernetes::ObjectMeta pod = *kubernetes::read_object(s.server.find(resized_pods, "a", "p")->dump());
  s.resizes.listed({{pod.uid, pod}});
  s.fence.clear();
  s.server.add_fault(
      {.kind = kubernetes::ApiFault::Kind::lose_answer, .method = "PATCH", .target = "pods/p/status"});
  s.resizes.consider_all();
  s.time.run_for(10 * second_ns);
  EXPECT_FALSE(s.is_changing());
  EXPECT_EQ(s.reserved_now(), 1_GiB);
  EXPECT_EQ(s.notes().size(), 1u);
}

TEST(ResizeWriter, a_rejected_resize_is_removed_with_an_event) {
  ResizeScenario s;
  for (const char* text : {"", "{", R"({"v":2})", R"({"v":1,"containers":{"c":{"memory":-1}}})",
                           R"({"v":1,"containers":{"c":{"memory":1048576,"share":5}}})",
                           R"({"v":1,"containers":{"c":{"memory":34359738368}}})"}) {
    const size_t before = s.notes().size();
    s.resize(std::string(text));
    EXPECT_FALSE(s.annotations().contains("carve.dev/resize")) << text;
    ASSERT_EQ(s.notes().size(), before + 1) << text;
    EXPECT_THAT(s.notes().back(), HasSubstr("CarveRefused: ")) << text;
  }
  EXPECT_THAT(s.notes().back(), HasSubstr("at most 22731 MiB fits"));
  EXPECT_EQ(s.written(), 4_GiB);
  ResizeScenario waits(false);
  waits.resize(6_GiB);
  EXPECT_THAT(waits.notes().back(), HasSubstr("the pod has no slices yet"));
}

// Resize requests that were added or removed while no watch was open appear only in the next list.
TEST(ResizeWriter, a_list_adds_resizes_and_removes_those_of_deleted_pods) {
  ResizeScenario s;
  s.fence = "another coordinator holds the lease";
  s.resize(6_GiB);
  const nlohmann::json resizing = *s.server.find(resized_pods, "a", "p");
  s.resizes.listed({});
  s.fence.clear();
  s.resizes.consider_all();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.written(), 4_GiB) << "no list contains the pod";
  const kubernetes::ObjectMeta pod = *kubernetes::read_object(resizing.dump());
  s.resizes.listed({{pod.uid, pod}});
  s.resizes.consider_all();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.written(), 6_GiB);
}

TEST(ResizeWriter, a_deleted_pod_is_not_requested_again) {
  ResizeScenario s;
  s.server.add_fault({.kind = kubernetes::ApiFault::Kind::status,
                      .method = "PATCH",
                      .target = "pods/p/status",
                      .status = 404});
  s.resize(6_GiB);
  const auto patches = [&] {
    return std::ranges::count_if(s.server.requests(),
                                 [](const std::string& r) { return r.starts_with("PATCH"); });
  };
  const auto before = patches();
  EXPECT_EQ(before, 1);
  s.resizes.consider_all();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(patches(), before);
}

TEST(ResizeWriter, writes_only_inside_the_fence) {
  ResizeScenario s;
  s.fence = "another coordinator holds the lease";
  s.resize(6_GiB);
  EXPECT_EQ(s.written(), 4_GiB);
  EXPECT_TRUE(s.annotations().contains("carve.dev/resize"));
  EXPECT_TRUE(s.notes().empty());
}

// Whatever happens to the write, the cache must end with the pod's amounts, and the resize request is handled
// once.
TEST(ResizeWriter, determines_the_outcome_of_a_write_without_a_response) {
  using Kind = kubernetes::ApiFault::Kind;
  for (const Kind kind : {Kind::status, Kind::lose_request, Kind::lose_answer, Kind::hang})
    for (const unsigned status : {500u, 409u, 429u, 403u}) {
      ResizeScenario s;
      s.server.add_fault({.kind = kind, .method = "PATCH", .target = "pods/p/status", .status = status});
      s.resize(6_GiB);
      for (int i = 0; i < 3; ++i) {
        s.resizes.consider_all();
        s.time.run_for(10 * second_ns);
      }
      EXPECT_EQ(s.written(), 6_GiB);
      EXPECT_EQ(s.reserved_now(), 6_GiB);
      EXPECT_FALSE(s.annotations().contains("carve.dev/resize"));
      s.node_reports(6_GiB);
      EXPECT_EQ(s.notes().size(), 1u) << static_cast<int>(kind) << " " << status;
    }
}

TEST(ResizeWriter, a_newer_resize_request_is_not_removed_unseen) {
  ResizeScenario s;
  s.server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .method = "WATCH", .target = "pods"});
  s.resize(6_GiB);  // Its event arrives late.
  s.resize(7_GiB);
  s.server.release_late();
  s.time.run_for(20 * second_ns);
  s.resizes.consider_all();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(s.written(), 7_GiB);
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
