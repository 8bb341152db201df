#include "kubernetes/cli/views.h"

#include <gmock/gmock.h>

#include "kubernetes/cli/consolidate.h"
#include "kubernetes/cli/explain.h"
#include "kubernetes/cli/fleet_snapshot.h"
#include "kubernetes/cli/settings.h"
#include "kubernetes/cli/verbs.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"
#include "wire/api/json_value.h"
#include "wire/api/percent.h"

namespace carve::kubernetes::cli {
namespace {

using namespace coordinator::testing;
using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json object_of(const kubernetes::ObjectMeta& meta) {
  return {{"metadata",
           {{"name", meta.name},
            {"namespace", meta.name_space},
            {"uid", meta.uid},
            {"resourceVersion", "1"},
            {"labels", meta.labels},
            {"annotations", meta.annotations}}}};
}

std::string list_of(const std::vector<kubernetes::ObjectMeta>& objects) {
  Json items = Json::array();
  for (const kubernetes::ObjectMeta& object : objects) items.push_back(object_of(object));
  return Json{{"kind", "List"}, {"metadata", {{"resourceVersion", "5"}}}, {"items", items}}.dump();
}

kubernetes::ObjectMeta labelled(kubernetes::ObjectMeta node) {
  node.labels["carve.dev/node"] = "extender";
  return node;
}

kubernetes::PodSlices slices_on(const std::string& node, unsigned number, Bytes memory, uint32_t share_bp) {
  kubernetes::PodSlices out{.node = node};
  kubernetes::PlacedSlice& slice = out.containers["c"];
  slice.parts = {{device_uuid(number, 1), memory, Share{share_bp}}};
  slice.isolation = Isolation::memory_and_compute;
  return out;
}

// Two nodes with two devices each, a running pod, a waiting pod, and a node that cannot be read.
ClusterView two_nodes() {
  kubernetes::NodeDevices changing = a10_devices(1, 2);
  changing.policy = {
      .desired = Policy::native_burst_share, .effective = Policy::fixed_share, .blocked_by = {"a/p"}};
  kubernetes::ObjectMeta broken = labelled(node_object("n2", a10_devices(2, 1)));
  broken.annotations[kubernetes::devices_annotation] = "{";
  kubernetes::PodRequest in_units{.dialect = "ack"};
  in_units.containers["c"] = {
      .amounts = {.memory_bytes = (40_GiB).count}, .unit = (1_GiB).count, .units = 40};
  const auto view = read_view(list_of({labelled(node_object("n1", changing)),
                                       labelled(node_object("n0", a10_devices(0, 2))), broken}),
                              list_of({bound(pod_object("p", 4_GiB, 3000), slices_on("n1", 1, 4_GiB, 3000)),
                                       pod_object("waiting", in_units)}));
  EXPECT_TRUE(view) << view.error();
  return *view;
}

TEST(Views, the_snapshot_contains_everything_that_can_be_read) {
  std::vector<std::string> left_out;
  const FleetSnapshot snapshot = snapshot_of(two_nodes(), left_out);
  ASSERT_EQ(snapshot.nodes.size(), 2u);
  EXPECT_EQ(snapshot.nodes[1].mode, "memory-and-compute");
  EXPECT_EQ(snapshot.nodes[1].policy, "fixed-share");
  EXPECT_EQ(snapshot.nodes[1].devices[1].uuid, text(device_uuid(1, 1)));
  ASSERT_EQ(snapshot.held.size(), 1u) << "a pod that waits has no slice";
  EXPECT_EQ(snapshot.held[0].name, "a/p/c");
  EXPECT_THAT(snapshot.held[0].devices, ElementsAre(text(device_uuid(1, 1))));
  EXPECT_EQ(snapshot.held[0].memory_bytes, (4_GiB).count);
  EXPECT_EQ(snapshot.held[0].share_bp, 3000u);
  EXPECT_THAT(left_out, ElementsAre(HasSubstr("node n2: ")));
  ClusterView without_node = two_nodes();
  without_node.nodes.erase(without_node.nodes.begin() + 1);
  EXPECT_TRUE(snapshot_of(without_node, left_out).held.empty());
  EXPECT_THAT(left_out.back(), "slice a/p/c: the devices of node n1 are unknown");
}

TEST(Views, nodes_show_their_usage_and_pending_changes) {
  const NodeList list = node_rows(two_nodes(), MemoryUnit::gib);
  ASSERT_EQ(list.nodes.size(), 3u);
  EXPECT_EQ(list.nodes[1].name, "n1");
  EXPECT_EQ(list.nodes[1].memory_used, 4_GiB);
  EXPECT_EQ(list.nodes[1].compute_used_percent, 30u);
  EXPECT_EQ(list.nodes[1].slices, 1u);
  EXPECT_THAT(list.nodes[1].pending, ElementsAre("fixed-share -> native-burst-share (blocked by a/p)"));
  EXPECT_NE(list.nodes[2].problem, "");
  const std::string text = table_text(table_of(list, Form::table));
  EXPECT_THAT(text, HasSubstr("NAME  BOOKKEEPER  MODE                POLICY       UNIT  DEVICES  MEMORY"));
  EXPECT_THAT(text, HasSubstr("4 GiB/45462 MiB"));
  EXPECT_THAT(table_text(table_of(list, Form::wide)), HasSubstr("NVIDIA A10"));
}

TEST(Views, nodes_that_differ_from_their_group_are_marked) {
  std::vector<kubernetes::ObjectMeta> nodes;
  for (unsigned i = 0; i < 4; ++i) {
    kubernetes::NodeDevices devices = a10_devices(i, 1);
    if (i == 2) devices.policy.effective = Policy::native_burst_share;
    nodes.push_back(labelled(node_object("n" + std::to_string(i), devices)));
    nodes.back().labels["pool"] = i == 0 ? "b" : "a";
  }
  const auto view = read_view(list_of(nodes), list_of({}));
  ASSERT_TRUE(view) << view.error();
  const NodeList list = node_rows(*view, std::nullopt, "pool");
  EXPECT_EQ(list.nodes[1].name, "n2");
  EXPECT_THAT(list.nodes[1].differs, ElementsAre("policy"));
  EXPECT_TRUE(list.nodes[0].differs.empty() && list.nodes[2].differs.empty());
  EXPECT_EQ(list.nodes[3].group, "b");
  const std::string text = table_text(table_of(list, Form::table));
  EXPECT_THAT(text, HasSubstr("native-burst-share (differs)"));
  EXPECT_THAT(text, ::testing::StartsWith("GROUP  NAME"));
}

TEST(Views, the_devices_table_ends_with_a_total) {
  const DeviceList list = device_rows(two_nodes());
  ASSERT_EQ(list.devices.size(), 4u);
  EXPECT_EQ(list.devices[3].memory_used, 4_GiB);
  EXPECT_EQ(list.memory_used, 4_GiB);
  EXPECT_EQ(list.slices, 1u);
  const std::string text = table_text(table_of(list, Form::table));
  EXPECT_THAT(text, HasSubstr("\nall   4"));
}

TEST(Views, amounts_are_lower_bounds_if_the_caller_cannot_list_all_pods) {
  ClusterView view = two_nodes();
  view.has_all_pods = false;
  EXPECT_THAT(table_text(table_of(device_rows(view), Form::table)), HasSubstr(">= 4 GiB/"));
  EXPECT_THAT(table_text(table_of(node_rows(view, std::nullopt), Form::table)), HasSubstr(">= 1"));
}

TEST(Views, slices_show_the_request_and_the_placement) {
  const SliceList list = slice_rows(two_nodes(), "");
  ASSERT_EQ(list.slices.size(), 2u);
  EXPECT_THAT(list.slices[0].devices, ElementsAre("1"));
  EXPECT_EQ(list.slices[0].isolation, "memory+compute");
  EXPECT_EQ(list.slices[1].asked, "40 x 1 GiB");
  EXPECT_THAT(table_text(table_of(list, Form::table)), HasSubstr("waits"));
  EXPECT_TRUE(slice_rows(two_nodes(), "other").slices.empty());
  EXPECT_EQ(Json::parse(api::write(list))["slices"][0]["namespace"], "a");
  EXPECT_EQ(names_text(table_of(list, Form::table)), "pod/p\npod/waiting\n");
}

TEST(Views, amounts_of_a_slice_are_totals) {
  kubernetes::PodSlices two{.node = "n0"};
  two.containers["c"].parts = {{device_uuid(0, 0), 2_GiB, Share{5000}},
                               {device_uuid(0, 1), 2_GiB, Share{5000}}};
  two.containers["c"].isolation = Isolation::memory_and_compute;
  const auto view = read_view(list_of({labelled(node_object("n0", a10_devices(0, 2)))}),
                              list_of({bound(pod_object("p", 4_GiB, 5000, 2), two)}));
  ASSERT_TRUE(view);
  const SliceRow row = slice_rows(*view, "").slices.at(0);
  EXPECT_EQ(row.memory, 4_GiB);
  EXPECT_EQ(row.compute_percent, 100u);
  EXPECT_THAT(table_text(table_of(device_rows(*view), Form::table)), HasSubstr("100%/200%"));
  EXPECT_THAT(table_text(table_of(device_rows(*view), Form::table), Headings::hidden),
              ::testing::StartsWith("n0    0"));
}

// carve-kubelet does not run on the node, so kubelet offers no slot.
TEST(Views, a_node_without_slots_serves_nothing) {
  Json nodes = Json::parse(list_of({labelled(node_object("n0", a10_devices(0, 1)))}));
  nodes["items"][0]["status"]["allocatable"] = {{"cpu", "8"}, {"carve.dev/slot", "0"}};
  const auto view = read_view(nodes.dump(), list_of({pod_object("waiting", 4_GiB)}));
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->nodes[0].has_slots);
  EXPECT_THAT(node_rows(*view, std::nullopt).nodes[0].problem,
              HasSubstr("does not advertise carve.dev/slot"));
  const auto why = explain_pod(*view, "a", "waiting");
  EXPECT_TRUE(why->nodes.empty());
  EXPECT_THAT(why->message, HasSubstr("node n0: kubelet does not advertise carve.dev/slot"));
  nodes["items"][0]["status"]["allocatable"]["carve.dev/slot"] = "256";
  EXPECT_TRUE(read_view(nodes.dump(), list_of({}))->nodes[0].has_slots);
}

TEST(Views, json_and_yaml_documents_have_the_same_fields) {
  const std::string json = api::write(device_rows(two_nodes()));
  EXPECT_EQ(Json::parse(document_text(json, Form::json))["devices"][3]["memory_used_bytes"], 4ull << 30);
  EXPECT_THAT(document_text(json, Form::yaml), HasSubstr("\n  memory_used_bytes: 4294967296"));
}

TEST(Views, a_waiting_pod_is_explained_from_the_cache) {
  const ClusterView view = two_nodes();
  const auto why = explain_pod(view, "a", "waiting");
  ASSERT_TRUE(why) << why.error();
  EXPECT_THAT(why->message, HasSubstr("0/3 nodes can serve"));
  EXPECT_TRUE(why->nodes.empty());
  EXPECT_EQ(explain_pod(view, "a", "p")->message, "bound to node n1");
  EXPECT_FALSE(explain_pod(view, "a", "other"));
}

TEST(Views, manifests_are_explained_before_their_pods_exist) {
  const auto why = explain_manifests(two_nodes(), R"(
kind: Pod
metadata: {name: new}
spec: {containers: [{name: c, resources: {limits: {carve.dev/memory: 20Gi}}}]}
---
kind: Service
)",
                                     {});
  ASSERT_TRUE(why) << why.error().front().message;
  ASSERT_EQ(why->size(), 1u);
  EXPECT_EQ((*why)[0].pod, "new");
  EXPECT_THAT((*why)[0].nodes, ElementsAre("n0", "n1"));
  EXPECT_FALSE(explain_manifests(two_nodes(), "kind: Pod", {}));
}

TEST(Views, all_replicas_of_a_manifest_are_explained) {
  const auto explain = [](unsigned replicas) {
    const auto why = explain_manifests(two_nodes(),
                                       fmt::format(R"(
kind: StatefulSet
metadata: {{name: set}}
spec:
  replicas: {}
  template:
    spec: {{containers: [{{name: c, resources: {{limits: {{carve.dev/memory: 20Gi}}}}}}]}}
)",
                                                   replicas),
                                       {});
    EXPECT_TRUE(why);
    return why->at(0);
  };
  EXPECT_EQ(explain(3).message, "3 of 3 replicas fit");
  EXPECT_THAT(explain(3).nodes, ::testing::UnorderedElementsAre("n0", "n1"));
  EXPECT_EQ(explain(0).message, "0 of 0 replicas fit");
  EXPECT_THAT(explain(5).message, HasSubstr("3 of 5 replicas fit. The next one: 0/3 nodes can serve"));
}

TEST(Views, the_newest_event_contains_the_reason) {
  EXPECT_EQ(newest_reason(
                R"({"items":[{"reason":"CarveInsufficientCapacity","eventTime":"2026-01-02","note":"new"},)"
                R"({"reason":"CarveInsufficientCapacity","eventTime":"2026-01-01","note":"old"},)"
                R"({"reason":"Other","eventTime":"2026-01-03","note":"other"},5]})"),
            "new");
  for (const char* text : {"", "[]", "{}", R"({"items":5})"}) EXPECT_EQ(newest_reason(text), "");
}

TEST(Views, a_plan_is_printed_but_not_carried_out) {
  std::vector<kubernetes::ObjectMeta> pods;
  for (unsigned device = 0; device < 2; ++device) {
    kubernetes::PodSlices slices = slices_on("n0", 0, 4_GiB, 0);
    slices.containers["c"].parts[0].device = device_uuid(0, device);
    slices.containers["c"].isolation = Isolation::memory;
    pods.push_back(bound(pod_object("p" + std::to_string(device), 4_GiB), slices));
  }
  const auto view = read_view(list_of({labelled(node_object("n0", a10_devices(0, 2)))}), list_of(pods));
  ASSERT_TRUE(view) << view.error();
  const ConsolidationList plan = consolidation_of(*view, 1);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].pod, "a/p0");
  EXPECT_THAT(plan.moves[0].to, ElementsAre("n0/1"));
  EXPECT_EQ(summary(plan), "n0/0 would be empty after 1 move of 4 GiB in total; no slice was moved");
  EXPECT_THAT(table_text(table_of(plan)), HasSubstr("a/p0  n0/0  n0/1  4 GiB"));
  EXPECT_EQ(summary(consolidation_of(*read_view(list_of({}), list_of({})), 1)),
            "no device can be emptied by moving slices");
}

TEST(Views, settings_show_pending_changes) {
  const auto list = setting_rows(R"({"data":{"gpuMemoryUnit":"1GiB","gpuMemoryUnitWhenFree":"128MiB"}})",
                                 {{1u << 30, {"a/web-0"}}});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->settings[0].pending, "1GiB -> 128MiB (blocked by a/web-0)");
  EXPECT_THAT(table_text(table_of(*list)), HasSubstr("dialects               carve, ack, vke, hami"));
  EXPECT_FALSE(setting_rows(R"({"data":{"sharing":"no"}})", {}));
}

TEST(Views, a_setting_is_shown_once_it_is_in_effect) {
  const std::string map =
      Json{{"metadata",
            {{"name", "carve-settings"},
             {"namespace", "carve-system"},
             {"uid", "u"},
             {"annotations",
              {{"carve.dev/effective-settings",
                R"({"gpuMemoryUnit":"1GiB","strategy":"binpack","sharing":"enabled"})"}}}}},
           {"data", {{"gpuMemoryUnit", "128MiB"}, {"strategy", "spread"}}}}
          .dump();
  const auto list = setting_rows(map, {});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->settings[0].value, "1GiB");
  EXPECT_EQ(list->settings[0].pending, "1GiB -> 128MiB (not yet read by the coordinator)");
  EXPECT_EQ(unit_in_effect(map), MemoryUnit::gib);
  EXPECT_THAT(table_text(table_of(*list)),
              HasSubstr("binpack -> spread (when the coordinator is restarted)"));
  EXPECT_EQ(unit_in_effect(R"({"data":{"gpuMemoryUnit":"128MiB"}})"), MemoryUnit::mib_128);
  EXPECT_EQ(unit_in_effect("{"), std::nullopt);
}

TEST(Views, invalid_lists_are_rejected) {
  for (const char* text : {"", "{", "[]", "{}"}) EXPECT_FALSE(read_view(text, list_of({}))) << text;
  EXPECT_FALSE(read_view(list_of({}), "text"));
  EXPECT_EQ(api::percent_encoded("a=b,c!=d"), "a%3Db%2Cc%21%3Dd");
}

}  // namespace
}  // namespace carve::kubernetes::cli
