#include "kubernetes/coordinator/coordinator.h"

#include <gmock/gmock.h>

#include "kubernetes/coordinator/testing/coordinator_scenario.h"

namespace carve::kubernetes::coordinator {
namespace {

using namespace coordinator::testing;
using api::Json;
using kubernetes::second_ns;
using ::testing::HasSubstr;

TEST(Coordinator, binds_while_its_scheduler_holds_the_lease) {
  CoordinatorScenario s;
  s.begin();
  const auto pod = s.create_pod("p", 4_GiB);
  EXPECT_NE(s.bind(pod), R"({"Error":""})") << "nothing has been listed yet";
  s.time.run_for(10 * second_ns);
  EXPECT_TRUE(s.coordinator->is_active());
  EXPECT_EQ(s.ready(), "ok\n");
  EXPECT_EQ(s.bind(pod), R"({"Error":""})");
  EXPECT_EQ((*s.server.find(pods_path, "a", "p"))["spec"]["nodeName"], "n0");
  s.holder = "h2_0b2c7c3e-1d1f-4c59-9f1a-2f5a3c1d7e02";
  s.time.run_for(10 * second_ns);
  EXPECT_THAT(s.bind(s.create_pod("q", 4_GiB)), HasSubstr("does not hold the Lease"));
}

TEST(Coordinator, a_new_holder_lists_before_it_binds) {
  CoordinatorScenario s;
  s.holder = "h2_0b2c7c3e-1d1f-4c59-9f1a-2f5a3c1d7e02";
  s.begin();
  s.time.run_for(20 * second_ns);
  EXPECT_EQ(s.ready(), "ok\n") << "a standby replica serves webhooks";
  // Another coordinator binds, and this coordinator's watch is delayed.
  s.server.add_fault({.kind = kubernetes::ApiFault::Kind::late, .method = "WATCH", .target = "pods"});
  kubernetes::PodSlices slices{.node = "n0"};
  slices.containers["c"].parts = {{device_uuid(0, 0), 20_GiB, {}}};
  auto pod = s.create_pod("theirs", 20_GiB);
  pod["metadata"]["annotations"]["carve.dev/slices"] = api::write(slices);
  pod["spec"]["nodeName"] = "n0";
  s.server.put(pods_path, pod);
  s.holder = "h1_0b2c7c3e-1d1f-4c59-9f1a-2f5a3c1d7e01";
  s.time.run_for(10 * second_ns);
  ASSERT_TRUE(s.coordinator->is_active());
  EXPECT_THAT(s.bind(s.create_pod("ours", 20_GiB)), HasSubstr("no longer fits on node n0: memory"));
}

TEST(Coordinator, writes_one_event_for_a_waiting_pod) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 40_GiB);
  for (int i = 0; i < 4; ++i) {
    s.bind(pod);
    s.time.run_for(second_ns);
  }
  const auto& requests = s.server.requests();
  EXPECT_EQ(std::ranges::count(requests, "POST /apis/events.k8s.io/v1/namespaces/a/events"), 1);
}

// The scheduler's own plugin rejects nodes whose totals are used up, so the scheduler never calls the
// extender.
TEST(Coordinator, writes_an_event_for_a_pod_that_the_scheduler_does_not_send) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  s.create_pod("large", 64_GiB);
  s.create_pod("fits", 4_GiB);
  s.time.run_for(45 * second_ns);
  const auto& events = s.server.all("/apis/events.k8s.io/v1/events");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["regarding"]["name"], "large");
  EXPECT_EQ(events[0]["reason"], "CarveInsufficientCapacity");
  EXPECT_THAT(events[0]["note"].get<std::string>(), HasSubstr("0/1 nodes can serve"));
  s.time.run_for(180 * second_ns);
  EXPECT_EQ(s.server.all("/apis/events.k8s.io/v1/events").size(), 1u) << "the reason has not changed";
}

TEST(Coordinator, a_changed_setting_takes_effect_when_it_is_written) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(12 * second_ns);
  // The decision is made when the review arrives, even if the response comes later.
  const auto memory = [&] { return s.review({{"aliyun.com/gpu-mem", "2"}})["patch"]; };
  const auto before = memory();
  s.time.run_for(second_ns);  // Between two polls.
  const auto effective = [&] {
    const auto object = *s.server.find(config_maps, "carve-system", "carve-settings");
    return Json::parse(object["metadata"]["annotations"]["carve.dev/effective-settings"].get<std::string>());
  };
  EXPECT_EQ(effective()["gpuMemoryUnit"], "1GiB");
  auto changed = *s.server.find(config_maps, "carve-system", "carve-settings");
  changed["data"] = {{"gpuMemoryUnit", "128MiB"}, {"strategy", "spread"}};
  s.server.put(config_maps, changed);
  s.time.run_for(second_ns / 2);
  EXPECT_NE(memory(), before);
  s.time.run_for(second_ns);
  EXPECT_EQ(effective()["gpuMemoryUnit"], "128MiB");
  EXPECT_EQ(effective()["strategy"], "binpack") << "until the coordinator is restarted";
}

TEST(Coordinator, settings_decide_what_the_webhook_writes) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_TRUE(s.review({{"aliyun.com/gpu-mem", 16}}).contains("patch"));
  s.write_settings({{"dialects", "carve"}});
  s.time.run_for(10 * second_ns);
  const Json refused = s.review({{"aliyun.com/gpu-mem", 16}});
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_THAT(refused["status"]["message"].get<std::string>(),
              HasSubstr("dialect ack is disabled in carve-settings"));
  s.write_settings({{"dialects", "all"}});
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.review({{"carve.dev/memory", "4Gi"}})["allowed"], true)
      << "the last readable settings stay in effect";
}

TEST(Coordinator, a_namespace_may_disable_sharing_and_has_its_quotas) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  s.server.put("/api/v1/namespaces",
               {{"metadata", {{"name", "b"}, {"labels", {{"carve.dev/sharing", "disabled"}}}}}});
  s.server.put("/api/v1/resourcequotas", {{"metadata", {{"name", "q"}, {"namespace", "a"}}},
                                          {"spec", {{"hard", {{"requests.aliyun.com/gpu-mem", "4"}}}}}});
  EXPECT_THAT(s.review({{"carve.dev/memory", "4Gi"}}, "b")["status"]["message"].get<std::string>(),
              HasSubstr("sharing is disabled in namespace b"));
  EXPECT_EQ(s.review({{"carve.dev/devices", "1"}}, "b")["allowed"], true);
  EXPECT_THAT(s.review({{"aliyun.com/gpu-mem", "4"}})["status"]["message"].get<std::string>(),
              HasSubstr("namespace a has a quota on requests.aliyun.com/gpu-mem"));
  EXPECT_EQ(s.review({{"carve.dev/memory", "4Gi"}})["allowed"], true);
  for (const char* name : {"missing", "../nodes", ""})
    EXPECT_EQ(s.review({{"carve.dev/memory", "4Gi"}}, name)["status"]["code"], 503) << name;
}

TEST(Coordinator, changes_the_memory_unit_when_no_pod_uses_it) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  s.create_pod("web-0", 4_GiB, 1u << 30);
  s.write_settings({{"gpuMemoryUnit", "1GiB"}, {"gpuMemoryUnitWhenFree", "128MiB"}});
  s.time.run_for(30 * second_ns);
  const auto settings = [&] { return *s.server.find(config_maps, "carve-system", "carve-settings"); };
  EXPECT_THAT(settings()["metadata"]["annotations"]["carve.dev/settings"].get<std::string>(),
              HasSubstr(R"("effective":"1GiB","blocked_by":["a/web-0"])"));
  EXPECT_TRUE(s.coordinator->figures().pending["gpuMemoryUnit"]);
  const Json review{{"apiVersion", "admission.k8s.io/v1"},
                    {"kind", "AdmissionReview"},
                    {"request",
                     {{"uid", "u"},
                      {"operation", "UPDATE"},
                      {"object", {{"data", {{"gpuMemoryUnit", "128MiB"}}}}},
                      {"oldObject", {{"data", {{"gpuMemoryUnit", "1GiB"}}}}}}}};
  EXPECT_THAT(s.post(&Coordinator::webhook, "/settings", review.dump()),
              HasSubstr("gpuMemoryUnit stays 1GiB: 1 pod was created with units of 1 GiB: a/web-0"));
  s.server.remove(pods_path, "a", "web-0");
  s.time.run_for(30 * second_ns);
  EXPECT_EQ(settings()["data"], (nlohmann::json{{"gpuMemoryUnit", "128MiB"}}));
  EXPECT_FALSE(s.coordinator->figures().pending["gpuMemoryUnit"]);
}

TEST(Coordinator, reports_an_overcommitted_device_and_evicts_no_pod) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  for (const char* name : {"p", "q"}) {
    kubernetes::PodSlices slices{.node = "n0"};
    slices.containers["c"].parts = {{device_uuid(0, 0), std::string(name) == "p" ? 20_GiB : 4_GiB, {}}};
    auto pod = s.create_pod(name, 4_GiB);
    pod["metadata"]["annotations"]["carve.dev/slices"] = api::write(slices);
    s.server.put(pods_path, pod);
  }
  s.time.run_for(80 * second_ns);
  EXPECT_EQ(s.coordinator->figures().overcommitted_devices, 1u);
  s.time.run_for(200 * second_ns);
  const auto events = s.server.all("/apis/events.k8s.io/v1/events");
  ASSERT_EQ(events.size(), 1u) << "one event per message";
  EXPECT_EQ(events[0]["reason"], "CarveOvercommitted");
  EXPECT_EQ(events[0]["regarding"]["kind"], "Node");
  EXPECT_EQ(events[0]["regarding"]["name"], "n0");
  EXPECT_EQ(events[0]["metadata"]["namespace"], "default");
  EXPECT_THAT(events[0]["note"].get<std::string>(),
              HasSubstr("24 GiB and 2 isolated slices are granted; it has 22731 MiB and can have at most 16 "
                        "slices. Pods: a/p 20 GiB, a/q 4 GiB. No pod is evicted"));
  EXPECT_NE(s.server.find(pods_path, "a", "p"), nullptr);
  s.server.remove(pods_path, "a", "q");
  s.time.run_for(80 * second_ns);
  EXPECT_EQ(s.coordinator->figures().overcommitted_devices, 0u);
}

TEST(Coordinator, reports_a_ledger_that_differs_from_the_cache) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const auto pod = s.create_pod("p", 4_GiB);
  ASSERT_EQ(s.bind(pod), R"({"Error":""})");
  const std::string uid = pod["metadata"]["uid"];
  const auto part = [](const char* slice, const std::string& name, const std::string& of, Bytes memory) {
    return kubernetes::LedgerPart{.slice = slice,
                                  .pod = name,
                                  .uid = of,
                                  .container = "c",
                                  .device = device_uuid(0, 0),
                                  .memory = memory.count,
                                  .share_bp = 0};
  };
  const auto write = [&](const std::optional<kubernetes::NodeLedger>& ledger) {
    nlohmann::json node = *s.server.find(nodes_path, "", "n0");
    node["metadata"]["annotations"].erase("carve.dev/ledger");
    if (ledger) node["metadata"]["annotations"]["carve.dev/ledger"] = api::write(*ledger);
    s.server.put(nodes_path, node);
    s.time.run_for(80 * second_ns);
  };
  write(kubernetes::NodeLedger{.parts = {part("s1", "a/p", uid, 4_GiB)}});
  EXPECT_EQ(s.coordinator->figures().drifting_devices, 0u) << "the cache has the same amounts";
  write(kubernetes::NodeLedger{
      .parts = {part("s1", "a/p", uid, 6_GiB), part("s2", "a/gone", "u-gone", 2_GiB)}});
  EXPECT_EQ(s.coordinator->figures().drifting_devices, 1u);
  s.time.run_for(200 * second_ns);
  const auto events = s.server.all("/apis/events.k8s.io/v1/events");
  ASSERT_EQ(events.size(), 1u) << "one event a message";
  EXPECT_EQ(events[0]["reason"], "CarveLedgerDrift");
  EXPECT_EQ(events[0]["regarding"]["kind"], "Node");
  EXPECT_THAT(
      events[0]["note"].get<std::string>(),
      HasSubstr("of node n0: the cache grants 4 GiB of 22731 MiB, but the node's ledger differs: pod a/p, "
                "container c: 6 GiB in the ledger, 4 GiB in the cache; pod a/gone, container c: 2 GiB in "
                "the ledger, 0 B in the cache. The node refuses to start a container that exceeds the free "
                "capacity in its ledger"));
  for (int i = 0; i < 3; ++i) {
    write(std::nullopt);
    EXPECT_EQ(s.coordinator->figures().drifting_devices, 0u);
    write(kubernetes::NodeLedger{.parts = {part("s1", "a/p", uid, i % 2 == 0 ? 7_GiB : 6_GiB)}});
    EXPECT_EQ(s.coordinator->figures().drifting_devices, 1u);
  }
  EXPECT_EQ(s.server.all("/apis/events.k8s.io/v1/events").size(), 3u) << "three messages in 10 minutes";
  write(std::nullopt);
  s.time.run_for(600 * second_ns);
  write(kubernetes::NodeLedger{.parts = {part("s1", "a/p", uid, 7_GiB)}});
  EXPECT_EQ(s.server.all("/apis/events.k8s.io/v1/events").size(), 4u);
  write(std::nullopt);
  EXPECT_NE(s.server.find(pods_path, "a", "p"), nullptr) << "no pod is evicted";
}

TEST(Coordinator, writes_an_event_for_unreadable_annotations) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  nlohmann::json node = *s.server.find(nodes_path, "", "n0");
  node["metadata"]["annotations"]["carve.dev/devices"] = R"({"v":9})";
  node["metadata"]["annotations"]["carve.dev/ledger"] = "text";
  s.server.put(nodes_path, node);
  auto pod = s.create_pod("p", 4_GiB);
  pod["metadata"]["annotations"]["carve.dev/slices"] = R"({"v":9})";
  s.server.put(pods_path, pod);
  s.time.run_for(200 * second_ns);
  std::vector<std::string> reported;
  for (const auto& event : s.server.all("/apis/events.k8s.io/v1/events")) {
    EXPECT_EQ(event["reason"], "CarveUnreadable");
    reported.push_back(event["regarding"]["kind"].get<std::string>() + " " +
                       event["note"].get<std::string>());
  }
  EXPECT_THAT(reported, ::testing::UnorderedElementsAre(
                            HasSubstr("Node carve.dev/devices version 9: this program reads 1"),
                            HasSubstr("Node carve.dev/ledger"),
                            HasSubstr("Pod carve.dev/slices version 9: this program reads 1")));
}

TEST(Coordinator, proposes_preemption_only_to_schedulers_that_support_it) {
  CoordinatorScenario c;
  c.begin();
  c.time.run_for(10 * second_ns);
  const auto pod = [&](const std::string& name, int32_t priority) {
    kubernetes::PodRequest request{.dialect = "carve"};
    request.containers["c"].amounts.memory_bytes = (16_GiB).count;
    request.priority = priority;
    return c.create_pod(name, request);
  };
  EXPECT_EQ(c.bind(pod("low", 0)), R"({"Error":""})");
  const auto high = pod("high", 100);
  c.time.run_for(second_ns);
  EXPECT_THAT(c.filter(high, {"n0"}), HasSubstr(R"("FailedNodes":{},"FailedAndUnresolvableNodes":{"n0":)"));
  c.server.version_text = R"({"major":"1","minor":"38","gitVersion":"v1.38.0"})";
  c.time.run_for(version_interval_ns + second_ns);
  EXPECT_THAT(c.filter(high, {"n0"}),
              HasSubstr(R"("FailedNodes":{"n0":"carve: memory"},"FailedAndUnresolvableNodes":{})"));
}

TEST(Coordinator, keeps_room_for_a_nominated_pod_for_60_s) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  kubernetes::PodRequest request{.dialect = "carve", .priority = 100};
  request.containers["c"].amounts.memory_bytes = (20_GiB).count;
  auto high = s.create_pod("high", request);
  high["status"]["nominatedNodeName"] = "n0";
  s.server.put(pods_path, high);
  s.time.run_for(10 * second_ns);
  EXPECT_THAT(s.bind(s.create_pod("low", 4_GiB)), HasSubstr("kept for a preempting pod"));
  high["metadata"]["labels"]["other"] = "x";
  s.server.put(pods_path, high);  // A change of the pod is not a new nomination.
  s.time.run_for(second_ns);
  high["status"].erase("nominatedNodeName");
  s.server.put(pods_path, high);
  s.time.run_for(second_ns);
  EXPECT_THAT(s.bind(s.create_pod("low", 4_GiB)), HasSubstr("kept for a preempting pod"));
  s.time.run_for(60 * second_ns);
  EXPECT_EQ(s.bind(s.create_pod("later", 4_GiB)), R"({"Error":""})");
}

TEST(Coordinator, a_replica_without_settings_or_certificate_is_not_ready) {
  CoordinatorScenario s;
  s.server.remove(config_maps, "carve-system", "carve-settings");
  s.certificate_problem = "Secret carve-tls has no certificate yet";
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.ready(), "ConfigMap carve-settings does not exist\n");
  s.write_settings({{"strategy", "binpack"}});
  s.time.run_for(10 * second_ns);
  EXPECT_EQ(s.ready(), "Secret carve-tls has no certificate yet\n");
  s.write_settings({{"strategy", "spread"}});
  s.time.run_for(10 * second_ns);
  EXPECT_TRUE(s.coordinator->figures().pending["strategy"]);
}

TEST(Coordinator, rejects_other_paths_and_bodies) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  EXPECT_THAT(s.post(&Coordinator::webhook, "/", ""), HasSubstr("use /mutate"));
  EXPECT_THAT(s.post(&Coordinator::health, "/", ""), HasSubstr("use /healthz"));
  EXPECT_NE(s.post(&Coordinator::webhook, "/mutate", "text"), "");
  EXPECT_NE(s.post(&Coordinator::webhook, "/settings", "text"), "");
  EXPECT_THAT(s.end(s.coordinator->webhook({.method = "GET", .path = "/metrics", .query = "", .body = ""})),
              HasSubstr("send the token"));
}

TEST(Coordinator, rejects_pods_of_accounts_without_budget_as_the_controller_publishes_them) {
  CoordinatorScenario s;
  s.begin();
  s.time.run_for(10 * second_ns);
  const Json pod{
      {"metadata", {{"name", "p"}, {"namespace", "a"}}},
      {"spec",
       {{"containers", Json::array({{{"name", "c"},
                                     {"image", "i"},
                                     {"resources", {{"limits", {{"carve.dev/memory", "4Gi"}}}}}}})}}}};
  const Json review{
      {"apiVersion", "admission.k8s.io/v1"},
      {"kind", "AdmissionReview"},
      {"request", {{"uid", "u"}, {"operation", "CREATE"}, {"namespace", "a"}, {"object", pod}}}};
  const auto is_allowed = [&] {
    return Json::parse(s.post(&Coordinator::webhook, "/mutate", review.dump()))["response"]["allowed"] ==
           true;
  };
  const auto publish = [&](const std::string& annotation) {
    s.server.put(config_maps, {{"metadata",
                                {{"name", "carve-budgets"},
                                 {"namespace", "carve-system"},
                                 {"annotations", {{kubernetes::budgets_annotation, annotation}}}}}});
    s.time.run_for(second_ns);
  };
  EXPECT_TRUE(is_allowed()) << "there is no ConfigMap";
  publish(R"({"v":1,"until":"1970-02-01T00:00:00Z","accounts":{"a":"b1"}})");
  EXPECT_FALSE(is_allowed());
  publish(R"({"v":1,"until":"1970-02-01T00:00:00Z","accounts":{"other":"b1"}})");
  EXPECT_TRUE(is_allowed());
  publish(R"({"v":1,"until":"1970-02-01T00:00:00Z","accounts":{"a":"b1"}})");
  EXPECT_FALSE(is_allowed());
  publish("not JSON");
  EXPECT_TRUE(is_allowed()) << "nothing is enforced that cannot be read";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
