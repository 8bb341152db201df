#include "cluster/wish_writer.h"

#include <gmock/gmock.h>

#include "cluster/snapshot/testing/cluster_objects.h"
#include "kube/testing/simulated_api_client.h"
#include "kube/watched_objects.h"

namespace carve::cluster {
namespace {

using namespace cluster::testing;
using kube::second_ns;
using ::testing::HasSubstr;

constexpr const char* wished_pods = "/api/v1/pods";
constexpr const char* written_events = "/apis/events.k8s.io/v1/events";

// A pod with 4 GiB on a device of 22731 MiB, and the watch that brings it.
struct WishScenario {
  kube::VirtualTime time;
  kube::ApiServerFake server;
  kube::SimulatedApiClient client{time, server, 1};
  Books books{Strategy::binpack};
  EventWriter events{client, "h1", [] { return int64_t{0}; }};
  std::string fence;
  WishWriter wishes{client, books, events, [this] { return fence; }};
  kube::ObjectWatch pods{client,
                         {.path = wished_pods, .label_selector = "", .field_selector = ""},
                         {.replaced =
                              [this](kube::ObjectsByUid by_uid) {
                                wishes.listed(by_uid);
                                books.replace_pods(std::move(by_uid));
                              },
                          .changed =
                              [this](const kube::ObjectMeta& pod) {
                                books.set_pod(pod);
                                wishes.consider(pod);
                              },
                          .removed =
                              [this](const kube::ObjectMeta& pod) {
                                books.remove_pod(pod.uid);
                                wishes.forget(pod.uid);
                              }},
                         1};

  explicit WishScenario(bool is_placed = true) {
    books.set_node(node_object("n0", a10_devices(0, 1)));
    kube::PodSlices slices{.node = "n0"};
    slices.containers["c"].parts = {{device_uuid(0, 0), 4_GiB, {}}};
    kube::ObjectMeta pod = pod_object("p", 4_GiB);
    if (is_placed) pod = bound(pod, slices);
    server.put(
        wished_pods,
        {{"metadata", {{"name", "p"}, {"namespace", "a"}, {"annotations", nlohmann::json(pod.annotations)}}},
         {"spec", {{"nodeName", "n0"}}},
         {"status", {{"phase", "Running"}}}});
    time.run_for(5 * second_ns);
  }
  nlohmann::json annotations() { return (*server.find(wished_pods, "a", "p"))["metadata"]["annotations"]; }
  void wish(const std::string& text) {
    nlohmann::json pod = *server.find(wished_pods, "a", "p");
    pod["metadata"]["annotations"]["carve.dev/wish"] = text;
    server.put(wished_pods, pod);
    time.run_for(10 * second_ns);
  }
  void wish(Bytes memory) {
    wish(fmt::format(R"({{"v":1,"containers":{{"c":{{"memory":{}}}}}}})", memory.count));
  }
  Bytes written() {
    const auto slices = kube::read_slices(annotations()["carve.dev/slices"].get<std::string>());
    return slices->containers.at("c").parts.front().memory;
  }
  Bytes booked_now() { return books.devices("n0").front().memory; }
  std::vector<std::string> notes() {
    std::vector<std::string> out;
    for (const nlohmann::json& event : server.all(written_events))
      out.push_back(event["reason"].get<std::string>() + ": " + event["note"].get<std::string>());
    return out;
  }
};

TEST(WishWriter, a_wish_becomes_new_amounts_and_an_event) {
  WishScenario s;
  s.wish(6_GiB);
  EXPECT_EQ(s.written(), 6_GiB);
  EXPECT_EQ(s.booked_now(), 6_GiB);
  EXPECT_FALSE(s.annotations().contains("carve.dev/wish"));
  EXPECT_THAT(s.notes(),
              ::testing::ElementsAre(
                  "CarveSliceChanged: container c: 6 GiB in place of 4 GiB; what scheduler and quotas "
                  "count for the pod stays what was asked"));
  s.wish(1_GiB);
  EXPECT_EQ(s.written(), 1_GiB);
  EXPECT_EQ(s.booked_now(), 1_GiB);
}

TEST(WishWriter, a_refused_wish_is_removed_with_its_reason) {
  WishScenario s;
  for (const char* text : {"", "{", R"({"v":2})", R"({"v":1,"containers":{"c":{"memory":-1}}})",
                           R"({"v":1,"containers":{"c":{"memory":1048576,"share":5}}})",
                           R"({"v":1,"containers":{"c":{"memory":34359738368}}})"}) {
    const size_t before = s.notes().size();
    s.wish(std::string(text));
    EXPECT_FALSE(s.annotations().contains("carve.dev/wish")) << text;
    ASSERT_EQ(s.notes().size(), before + 1) << text;
    EXPECT_THAT(s.notes().back(), HasSubstr("CarveRefused: ")) << text;
  }
  EXPECT_THAT(s.notes().back(), HasSubstr("at most 22731 MiB fits"));
  EXPECT_EQ(s.written(), 4_GiB);
  WishScenario waits(false);
  waits.wish(6_GiB);
  EXPECT_THAT(waits.notes().back(), HasSubstr("the pod has no slices yet"));
}

// What was wished while no watch was open, and who has gone meanwhile, is in a list alone.
TEST(WishWriter, a_list_brings_wishes_and_takes_those_of_pods_that_are_gone) {
  WishScenario s;
  s.fence = "another coordinator holds the lease";
  s.wish(6_GiB);
  const nlohmann::json wishing = *s.server.find(wished_pods, "a", "p");
  s.wishes.listed({});
  s.fence.clear();
  s.wishes.consider_all();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.written(), 4_GiB) << "the pod is in no list";
  const kube::ObjectMeta pod = *kube::read_object(wishing.dump());
  s.wishes.listed({{pod.uid, pod}});
  s.wishes.consider_all();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.written(), 6_GiB);
  EXPECT_EQ(s.notes().size(), 1u);
}

TEST(WishWriter, a_pod_that_is_gone_is_not_asked_for_again) {
  WishScenario s;
  s.server.add_fault(
      {.kind = kube::ApiFault::Kind::status, .method = "PATCH", .target = "pods/p/status", .status = 404});
  s.wish(6_GiB);
  const auto patches = [&] {
    return std::ranges::count_if(s.server.requests(),
                                 [](const std::string& r) { return r.starts_with("PATCH"); });
  };
  const auto before = patches();
  EXPECT_EQ(before, 1);
  s.wishes.consider_all();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(patches(), before);
}

TEST(WishWriter, writes_only_inside_the_fence) {
  WishScenario s;
  s.fence = "another coordinator holds the lease";
  s.wish(6_GiB);
  EXPECT_EQ(s.written(), 4_GiB);
  EXPECT_TRUE(s.annotations().contains("carve.dev/wish"));
  EXPECT_TRUE(s.notes().empty());
}

// Whatever becomes of the write, the books end with what the pod has, and the wish is answered once.
TEST(WishWriter, a_write_with_an_unknown_end_is_found_out) {
  using Kind = kube::ApiFault::Kind;
  for (const Kind kind : {Kind::status, Kind::lose_request, Kind::lose_answer, Kind::hang})
    for (const unsigned status : {500u, 409u, 429u, 403u}) {
      WishScenario s;
      s.server.add_fault({.kind = kind, .method = "PATCH", .target = "pods/p/status", .status = status});
      s.wish(6_GiB);
      for (int i = 0; i < 3; ++i) {
        s.wishes.consider_all();
        s.time.run_for(10 * second_ns);
      }
      EXPECT_EQ(s.written(), 6_GiB);
      EXPECT_EQ(s.booked_now(), 6_GiB);
      EXPECT_FALSE(s.annotations().contains("carve.dev/wish"));
      EXPECT_EQ(s.notes().size(), 1u) << static_cast<int>(kind) << " " << status;
    }
}

TEST(WishWriter, a_newer_wish_is_not_removed_unseen) {
  WishScenario s;
  s.server.add_fault({.kind = kube::ApiFault::Kind::late, .method = "WATCH", .target = "pods"});
  s.wish(6_GiB);  // Its event is late.
  s.wish(7_GiB);
  s.server.release_late();
  s.time.run_for(20 * second_ns);
  s.wishes.consider_all();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(s.written(), 7_GiB);
}

}  // namespace
}  // namespace carve::cluster
