#include "kubectl/views.h"

#include <gmock/gmock.h>

#include "cluster/snapshot/testing/cluster_objects.h"
#include "kubectl/consolidate.h"
#include "kubectl/explain.h"
#include "kubectl/fleet_snapshot.h"
#include "kubectl/settings.h"
#include "kubectl/verbs.h"
#include "wire/api/json_value.h"

namespace carve::kubectl {
namespace {

using namespace cluster::testing;
using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json object_of(const kube::ObjectMeta& meta) {
  return {{"metadata",
           {{"name", meta.name},
            {"namespace", meta.name_space},
            {"uid", meta.uid},
            {"resourceVersion", "1"},
            {"labels", meta.labels},
            {"annotations", meta.annotations}}}};
}

std::string list_of(const std::vector<kube::ObjectMeta>& objects) {
  Json items = Json::array();
  for (const kube::ObjectMeta& object : objects) items.push_back(object_of(object));
  return Json{{"kind", "List"}, {"metadata", {{"resourceVersion", "5"}}}, {"items", items}}.dump();
}

kube::ObjectMeta labelled(kube::ObjectMeta node) {
  node.labels["carve.dev/node"] = "extender";
  return node;
}

kube::PodSlices slices_on(const std::string& node, unsigned number, Bytes memory, uint32_t share_bp) {
  kube::PodSlices out{.node = node};
  kube::PlacedSlice& slice = out.containers["c"];
  slice.parts = {{device_uuid(number, 1), memory, Share{share_bp}}};
  slice.isolation = Isolation::memory_and_compute;
  return out;
}

// Two nodes of two devices, a pod that runs, one that waits, and a node that cannot be read.
ClusterView two_nodes() {
  kube::NodeDevices changing = a10_devices(1, 2);
  changing.policy = {
      .desired = Policy::native_burst_share, .effective = Policy::fixed_share, .blocked_by = {"a/p"}};
  kube::ObjectMeta broken = labelled(node_object("n2", a10_devices(2, 1)));
  broken.annotations[kube::devices_annotation] = "{";
  kube::PodRequest in_units{.dialect = "ack"};
  in_units.containers["c"] = {.memory = (40_GiB).count, .unit = (1_GiB).count, .units = 40};
  const auto view = read_view(list_of({labelled(node_object("n1", changing)),
                                       labelled(node_object("n0", a10_devices(0, 2))), broken}),
                              list_of({bound(pod_object("p", 4_GiB, 3000), slices_on("n1", 1, 4_GiB, 3000)),
                                       pod_object("waiting", in_units)}));
  EXPECT_TRUE(view) << view.error();
  return *view;
}

TEST(Views, the_snapshot_has_what_can_be_read) {
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
  EXPECT_THAT(left_out.back(), "slice a/p/c: node n1 is not described");
}

TEST(Views, nodes_show_what_is_used_and_pending) {
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

TEST(Views, nodes_of_a_group_that_differ_are_marked) {
  std::vector<kube::ObjectMeta> nodes;
  for (unsigned i = 0; i < 4; ++i) {
    kube::NodeDevices devices = a10_devices(i, 1);
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

TEST(Views, devices_end_with_their_sum) {
  const DeviceList list = device_rows(two_nodes());
  ASSERT_EQ(list.devices.size(), 4u);
  EXPECT_EQ(list.devices[3].memory_used, 4_GiB);
  EXPECT_EQ(list.memory_used, 4_GiB);
  EXPECT_EQ(list.slices, 1u);
  const std::string text = table_text(table_of(list, Form::table));
  EXPECT_THAT(text, HasSubstr("\nall   4"));
}

TEST(Views, what_a_caller_does_not_see_is_a_lower_bound) {
  ClusterView view = two_nodes();
  view.has_all_pods = false;
  EXPECT_THAT(table_text(table_of(device_rows(view), Form::table)), HasSubstr(">= 4 GiB/"));
  EXPECT_THAT(table_text(table_of(node_rows(view, std::nullopt), Form::table)), HasSubstr(">= 1"));
}

TEST(Views, slices_show_what_was_asked_and_where_it_is) {
  const SliceList list = slice_rows(two_nodes(), "");
  ASSERT_EQ(list.slices.size(), 2u);
  EXPECT_THAT(list.slices[0].devices, ElementsAre("1"));
  EXPECT_EQ(list.slices[0].isolation, "memory+compute");
  EXPECT_EQ(list.slices[1].asked, "40 x 1 GiB");
  EXPECT_THAT(table_text(table_of(list, Form::table)), HasSubstr("waits"));
  EXPECT_TRUE(slice_rows(two_nodes(), "other").slices.empty());
}

TEST(Views, documents_have_the_same_words) {
  const std::string json = api::write(device_rows(two_nodes()));
  EXPECT_EQ(Json::parse(document_text(json, Form::json))["devices"][3]["memory_used_bytes"], 4ull << 30);
  EXPECT_THAT(document_text(json, Form::yaml), HasSubstr("\"memory_used_bytes\": 4294967296"));
}

TEST(Views, a_waiting_pod_is_explained_by_the_books) {
  const ClusterView view = two_nodes();
  const auto why = explain_pod(view, "a", "waiting");
  ASSERT_TRUE(why) << why.error();
  EXPECT_THAT(why->sentence, HasSubstr("0/3 nodes can serve"));
  EXPECT_TRUE(why->nodes.empty());
  EXPECT_EQ(explain_pod(view, "a", "p")->sentence, "it runs on node n1");
  EXPECT_FALSE(explain_pod(view, "a", "other"));
}

TEST(Views, manifests_are_explained_before_they_exist) {
  const auto why = explain_manifests(two_nodes(), R"(
kind: Pod
metadata: {name: new}
spec: {containers: [{name: c, resources: {limits: {carve.dev/memory: 20Gi}}}]}
---
kind: Service
)",
                                     {});
  ASSERT_TRUE(why) << why.error().front().sentence;
  ASSERT_EQ(why->size(), 1u);
  EXPECT_EQ((*why)[0].pod, "new");
  EXPECT_THAT((*why)[0].nodes, ElementsAre("n0", "n1"));
  EXPECT_FALSE(explain_manifests(two_nodes(), "kind: Pod", {}));
}

TEST(Views, a_plan_is_printed_and_nothing_is_moved) {
  std::vector<kube::ObjectMeta> pods;
  for (unsigned device = 0; device < 2; ++device) {
    kube::PodSlices slices = slices_on("n0", 0, 4_GiB, 0);
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
  EXPECT_EQ(summary(plan), "n0/0 would be empty after 1 move of 4 GiB in all; no slice was moved");
  EXPECT_THAT(table_text(table_of(plan)), HasSubstr("a/p0  n0/0  n0/1  4 GiB"));
  EXPECT_EQ(summary(consolidation_of(*read_view(list_of({}), list_of({})), 1)),
            "no device can be emptied by moving slices");
}

TEST(Views, settings_show_what_is_pending) {
  const auto list = setting_rows(R"({"data":{"gpuMemoryUnit":"1GiB","gpuMemoryUnitWhenFree":"128MiB"}})",
                                 {{1u << 30, {"a/web-0"}}});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->settings[0].pending, "1GiB -> 128MiB (blocked by a/web-0)");
  EXPECT_THAT(table_text(table_of(*list)), HasSubstr("dialects        carve, ack, vke, hami"));
  EXPECT_FALSE(setting_rows(R"({"data":{"sharing":"no"}})", {}));
}

TEST(Views, what_is_no_list_is_refused) {
  for (const char* text : {"", "{", "[]", "{}"}) EXPECT_FALSE(read_view(text, list_of({}))) << text;
  EXPECT_FALSE(read_view(list_of({}), "text"));
  EXPECT_EQ(escaped("a=b,c!=d"), "a%3Db%2Cc%21%3Dd");
}

}  // namespace
}  // namespace carve::kubectl
