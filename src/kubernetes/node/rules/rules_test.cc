// Tests the small rules: slots, runtimes, releases, events.
#include <gmock/gmock.h>

#include "kubernetes/node/rules/container_reports.h"
#include "kubernetes/node/rules/kubelet_metrics.h"
#include "kubernetes/node/rules/releases.h"
#include "kubernetes/node/rules/runtime_capability.h"
#include "kubernetes/node/rules/slice_events.h"
#include "kubernetes/node/rules/slice_updates.h"
#include "kubernetes/node/rules/slot_choice.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(SlotChoice, takes_the_slot_that_has_been_unused_longest) {
  SlotUses uses;
  for (const uint32_t number : {0u, 1u, 2u, 0u}) uses.use({number});
  EXPECT_THAT(choose_slots(uses, {"s000", "s001", "s002"}, {}, 2), ElementsAre("s001", "s002"));
  EXPECT_THAT(choose_slots(uses, {"s000", "s001", "s002", "s255"}, {}, 2), ElementsAre("s255", "s001"));
  EXPECT_THAT(choose_slots(uses, {"s000", "s001"}, {"s000"}, 2), ElementsAre("s000", "s001"));
  EXPECT_THAT(choose_slots(uses, {"x", "s256", "../s1"}, {"s1"}, 2), IsEmpty());
  EXPECT_THAT(choose_slots(uses, {"s003"}, {}, 0), IsEmpty());
  EXPECT_EQ(all_slots().size(), 256u);
  EXPECT_EQ(all_slots().back(), "s255");
}

TEST(RuntimeCapability, is_read_from_the_configuration_or_derived_from_the_version) {
  struct Row {
    RuntimeFacts facts;
    bool has_cdi;
    const char* message;
  };
  const Row rows[] = {
      {{"containerd", "v2.4.2", R"({"containerd":{"enableCDI":false},"enableCDI":true})"}, true, ""},
      {{"containerd", "1.7.2", R"({"enableCDI":true})"}, true, ""},
      {{"containerd", "1.7.2", R"({"enableCDI":false})"}, false, "containerd 1.7.2 has CDI disabled"},
      {{"containerd", "v2.0.0-rc.1", ""}, true, ""},
      {{"containerd", "1.6.20~ds1", "{"}, false, "containerd 1.6.20~ds1 has no CDI; use containerd 1.7"},
      {{"cri-o", "1.30.1", ""}, true, ""},
      {{"cri-o", "1.22.0", ""}, false, "has no CDI"},
      {{"other", "9.9", ""}, false, "other 9.9 has no CDI"},
      {{"containerd", "", ""}, false, "has no CDI"},
      {{"containerd", "2", ""}, false, "has no CDI"}};
  for (const Row& row : rows) {
    const RuntimeCapability got = capability_of(row.facts);
    EXPECT_EQ(got.has_cdi, row.has_cdi) << row.facts.version;
    EXPECT_THAT(got.message, HasSubstr(row.message));
    EXPECT_EQ(got.message.empty(), row.has_cdi);
  }
}

TEST(RuntimeCapability, finds_the_first_process) {
  EXPECT_EQ(pid_of(R"({"sandboxID":"x","pid":4711,"runtimeSpec":{"pid":1}})"), 4711u);
  for (const char* bad : {"", "{}", R"({"pid":0})", R"({"pid":1})", R"({"pid":-5})", R"({"pid":"x"})",
                          R"({"pid":99999999999})", R"({"a":{"pid":5}})"})
    EXPECT_EQ(pid_of(bad), std::nullopt) << bad;
}

TEST(RuntimeCapability, recognizes_the_attach_directory_in_the_mounts) {
  const std::string mounts =
      "1 0 8:1 / / rw - ext4 /dev/sda rw\n36 1 0:22 /carve/carved.sock.run/attach/s017 /run/carve ro - tmpfs "
      "t rw\n";
  EXPECT_TRUE(has_attach_directory(mounts, "s017"));
  EXPECT_FALSE(has_attach_directory(mounts, "s018"));
  EXPECT_FALSE(has_attach_directory("36 1 0:22 /attach/s017 /run/other ro - tmpfs t rw", "s017"));
  EXPECT_FALSE(has_attach_directory("", "s017"));
}

TEST(Releases, orphans_are_slices_whose_pod_is_not_on_this_node) {
  std::vector<api::Slice> slices(4);
  for (size_t i = 0; i < slices.size(); ++i) slices[i].name = std::string(1, static_cast<char>('a' + i));
  slices[0].holder = Holder{.pod = PodContainer{"n", "p", "u1", "c"}, .claim = {}};
  slices[1].holder = Holder{.pod = PodContainer{"n", "p", "u2", "c"}, .claim = {}};
  slices[2].holder = Holder{.pod = {}, .claim = "u3"};
  const auto orphans = find_orphans(slices, {{"u1", {}}});
  ASSERT_EQ(orphans.size(), 1u);
  EXPECT_EQ(orphans[0].slice, "b");
}

TEST(Releases, require_a_proof) {
  const PodContainer holder{"n", "p", "u1", "c"};
  const auto pod = [](const char* uid, const char* phase) {
    return fmt::format(R"({{"metadata":{{"name":"p","uid":"{}"}},"status":{{"phase":"{}"}}}})", uid, phase);
  };
  const std::string not_found = R"({"kind":"Status","reason":"NotFound"})";
  EXPECT_TRUE(proves_gone({.status = 404, .body = not_found}, holder));
  EXPECT_TRUE(proves_gone({.status = 200, .body = pod("u2", "Running")}, holder));
  EXPECT_TRUE(proves_gone({.status = 200, .body = pod("u1", "Failed")}, holder));
  EXPECT_FALSE(proves_gone({.status = 200, .body = pod("u1", "Running")}, holder));
  EXPECT_FALSE(proves_gone({.status = 404, .body = "a proxy's page"}, holder));
  for (const unsigned status : {0u, 401u, 403u, 500u, 503u})
    EXPECT_FALSE(proves_gone({.status = status}, holder));
  EXPECT_FALSE(proves_gone({.status = 200, .body = "{"}, holder));
}

TEST(ContainerReports, an_init_container_is_confirmed_by_its_mounts) {
  api::Slice slice;
  slice.name = "a";
  slice.slot = "s017";
  slice.holder = Holder{.pod = PodContainer{"n", "p", "u1", "main"}, .claim = {}};
  api::Slice other = slice;
  other.name = "b";
  other.slot = "s018";
  other.holder->pod->container = "second";
  const auto container = [](const char* id, const char* uid, const char* name) {
    return RuntimeContainer{id, {{pod_uid_label, uid}, {container_name_label, name}}};
  };
  const std::vector<RuntimeContainer> running{container("1", "u1", "main"), container("2", "u1", "second"),
                                              container("3", "u1", "setup"), container("4", "u2", "setup")};
  std::vector<std::string> found;
  for (const ContainerReport& report : find_unreported({slice, other}, running, {}))
    found.push_back(report.key() + (report.is_shared ? " shared" : ""));
  EXPECT_THAT(found, ElementsAre("a 1", "a 3 shared", "b 2", "b 3 shared"));
  const auto info = [](const char* source, const char* destination) {
    return fmt::format(R"({{"pid":5,"runtimeSpec":{{"mounts":[{{"destination":"/proc","source":"proc"}},)"
                       R"({{"destination":"{}","options":["rbind"],"source":"{}"}}]}}}})",
                       destination, source);
  };
  EXPECT_TRUE(mounts_attach_directory(info("/run/carve/carved.sock.run/attach/s017", "/run/carve"), "s017"));
  EXPECT_FALSE(mounts_attach_directory(info("/run/carve/carved.sock.run/attach/s017", "/run/carve"), "s018"));
  EXPECT_FALSE(mounts_attach_directory(info("/x/attach/s017", "/other"), "s017"));
  for (const char* text :
       {"", "{", "[]", R"({"runtimeSpec":[]})", R"({"runtimeSpec":{"mounts":{"source":5}}})"})
    EXPECT_FALSE(mounts_attach_directory(text, "s017")) << text;
}

TEST(SliceUpdates, follow_the_annotation_of_slices_with_one_amount) {
  constexpr const char* uuids[] = {"GPU-00000000-0000-0000-0000-000000000001",
                                   "GPU-00000000-0000-0000-0000-000000000002"};
  api::Slice slice;
  slice.name = "a";
  slice.holder = Holder{.pod = PodContainer{"n", "p", "u1", "main"}, .claim = {}};
  for (const char* uuid : uuids) slice.parts.push_back({.uuid = uuid, .quota_bytes = 2048, .share_bp = 500});
  const auto updates = [&](const std::string& parts, const char* node = "n1") {
    kubernetes::ObjectMeta pod;
    pod.annotations["carve.dev/slices"] =
        fmt::format(R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[{}]}}}}}})", parts);
    return find_updates({slice}, node, {{"u1", pod}});
  };
  const auto part = [&](int device, int memory, int share) {
    return fmt::format(R"(["{}",{},{}])", uuids[device], memory, share);
  };
  EXPECT_THAT(updates(part(0, 2048, 500) + "," + part(1, 2048, 500)), IsEmpty());
  EXPECT_THAT(updates(part(0, 4096, 500) + "," + part(1, 4096, 500)),
              ElementsAre(SliceUpdate{"a", *slice.holder->pod, {.memory_bytes = 4096}}));
  EXPECT_THAT(updates(part(0, 4096, 700) + "," + part(1, 4096, 700)),
              ElementsAre(SliceUpdate{"a", *slice.holder->pod, {.memory_bytes = 4096, .share_bp = 700}}));
  EXPECT_THAT(updates(part(0, 4096, 500) + "," + part(1, 2048, 500)), IsEmpty()) << "parts differ";
  EXPECT_THAT(updates(part(1, 4096, 500) + "," + part(0, 4096, 500)), IsEmpty()) << "other devices";
  EXPECT_THAT(updates(part(0, 4096, 500)), IsEmpty());
  EXPECT_THAT(updates(""), IsEmpty());
  EXPECT_THAT(updates(part(0, 4096, 500) + "," + part(1, 4096, 500), "n2"), IsEmpty());
}

TEST(SliceUpdates, their_notes_contain_the_container) {
  SliceUpdate update{
      .slice = "a", .holder = {"n", "p", "u1", "main"}, .change = {.memory_bytes = 6ull << 30}};
  EXPECT_EQ(update_note(update, ""), "container main: the slice now has 6 GiB of each device");
  update.change.share_bp = 3000;
  EXPECT_EQ(update_note(update, "8 GiB are charged"),
            "container main: the slice does not get 6 GiB and 30% of the compute of each device: 8 GiB are "
            "charged");
}

TEST(SliceUpdatesDeathTest, an_update_without_an_amount_has_no_note) {
  EXPECT_DEATH((void)update_note({}, ""),
               "slice_updates\\.cc:[0-9]+: .*an update changes at least one amount");
}

TEST(KubeletMetrics, are_listed_with_those_of_the_agent) {
  kubernetes::NodeDevices devices;
  devices.policy.desired = Policy::native_burst_share;
  KubeletFigures figures{.version = "1", .watch_lag_ns = {{"pods", 1'500'000'000}}, .relists = {{"pods", 2}}};
  figures.pending = pending_settings(devices);
  const std::string text =
      metrics_text(figures, "carve_device_slices{device=\"0\"} 1\n", api::MetricsFormat::prometheus);
  EXPECT_THAT(text, StartsWith("carve_device_slices{device=\"0\"} 1\n# HELP carve_kubelet_info"));
  for (const char* line :
       {"carve_agent_up 1\n", "carve_watch_lag_seconds{resource=\"pods\"} 1.500000000\n",
        "carve_relists_total{resource=\"pods\"} 2\n", "carve_setting_pending{setting=\"mode\"} 0\n",
        "carve_setting_pending{setting=\"policy\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(metrics_text({}, std::nullopt, api::MetricsFormat::prometheus),
              HasSubstr("carve_agent_up 0\n"));
  EXPECT_TRUE(pending_settings(std::nullopt).empty());
}

TEST(KubeletMetrics, have_one_series_for_a_setting_that_the_agent_reports_too) {
  for (const api::MetricsFormat format : {api::MetricsFormat::prometheus, api::MetricsFormat::openmetrics}) {
    api::Exposition agent(format);
    agent.family(api::metric("carve_setting_pending"));
    agent.sample({"memory_unit"}, "1");
    agent.sample({"policy"}, "1");
    agent.family(api::metric("carve_driver_samples_total"));
    agent.sample("5");
    KubeletFigures figures;
    figures.pending = {{"mode", false}, {"policy", false}};
    const std::string text = metrics_text(figures, std::move(agent).text(), format);
    const auto count = [&](const std::string& line) {
      size_t found = 0;
      for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++found;
      return found;
    };
    EXPECT_EQ(count("# TYPE carve_setting_pending gauge\n"), 1u) << text;
    EXPECT_EQ(count("carve_setting_pending{setting=\"policy\"}"), 1u);
    EXPECT_EQ(count("carve_setting_pending{setting=\"policy\"} 0\n"), 1u);
    EXPECT_EQ(count("carve_setting_pending{setting=\"memory_unit\"} 1\n"), 1u);
    EXPECT_EQ(count("carve_driver_samples_total 5\n"), 1u);
    EXPECT_EQ(count("# EOF\n"), format == api::MetricsFormat::openmetrics ? 1u : 0u);
  }
}

TEST(SliceEvents, are_documents_within_the_limits) {
  const EventNote note{.about = {"Pod", "a", "web-0", "u"},
                       .severity = Severity::warning,
                       .reason = "CarveRefused",
                       .action = "StartContainer",
                       .note = std::string(max_note_bytes - 1, 'x') + "é\xff"};
  const auto document = api::parse(event_document(note, "n1", 1'764'003'600'123'456'789, 7));
  ASSERT_TRUE(document) << document.error();
  EXPECT_EQ((*document)["note"].get<std::string>().size(), max_note_bytes - 1);
  EXPECT_EQ((*document)["eventTime"], "2025-11-24T17:00:00.123456Z");
  EXPECT_EQ((*document)["regarding"]["namespace"], "a");
  EXPECT_EQ((*document)["type"], "Warning");
  EXPECT_EQ(event_target(note), "/apis/events.k8s.io/v1/namespaces/a/events");
  EXPECT_EQ(event_target({.about = {"Node", "", "n1", "u"}}),
            "/apis/events.k8s.io/v1/namespaces/default/events");
}

}  // namespace
}  // namespace carve::kubernetes::node
