#include "kubernetes/cli/view_claims.h"

#include <gmock/gmock.h>

#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using namespace coordinator::testing;
using api::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Lists of objects are no Json, because compilers differ in whether braces around one Json are a list.
Json list_with(std::vector<Json> items) {
  return {{"kind", "List"}, {"metadata", {{"resourceVersion", "5"}}}, {"items", std::move(items)}};
}

// A node with two devices of 22,731 MiB, whose pods use claims.
ClusterView dra_node() {
  const kubernetes::ObjectMeta node = node_object("n1", a10_devices(1, 2));
  const Json object = {{"metadata",
                        {{"name", "n1"},
                         {"uid", "u"},
                         {"resourceVersion", "1"},
                         {"labels", {{"carve.dev/node", "dra"}}},
                         {"annotations", node.annotations}}},
                       {"status", {{"allocatable", {{"cpu", "4"}, {"carve.dev/slot", "0"}}}}}};
  return *read_view(list_with({object}).dump(), list_with({}).dump());
}

Json claim(const char* name, std::vector<Json> results, const char* memory = "4Gi", int count = 1) {
  Json out = {
      {"metadata", {{"namespace", "a"}, {"name", name}}},
      {"spec",
       {{"devices",
         {{"requests",
           {{{"name", "gpu"},
             {"exactly",
              {{"deviceClassName", "carve.dev"},
               {"count", count},
               {"capacity", {{"requests", {{"memory", memory}, {"compute", "30"}}}}}}}}}}}}}},
      {"status", {{"reservedFor", {{{"resource", "pods"}, {"name", std::string("pod-of-") + name}}}}}}};
  if (!results.empty()) out["status"]["allocation"]["devices"]["results"] = std::move(results);
  return out;
}
Json on(const char* device, const char* memory = "4Gi") {
  return {{"driver", "carve.dev"},
          {"pool", "n1"},
          {"device", device},
          {"consumedCapacity", {{"memory", memory}, {"compute", "30"}, {"slices", "1"}}}};
}

std::vector<ViewClaim> claims(std::vector<Json> items) {
  return *read_claims(list_with(std::move(items)).dump());
}

std::string pod_with(const char* claim_name) {
  return Json{{"metadata", {{"namespace", "a"}, {"name", "p"}}},
              {"spec", {{"resourceClaims", {{{"name", "gpu"}, {"resourceClaimTemplateName", "t"}}}}}},
              {"status", {{"resourceClaimStatuses", {{{"name", "gpu"}, {"resourceClaimName", claim_name}}}}}}}
      .dump();
}

TEST(ViewClaims, are_counted_in_the_use_of_their_devices) {
  ClusterView view = dra_node();
  ASSERT_TRUE(view.nodes[0].is_dra && view.nodes[0].state) << view.nodes[0].problem;
  EXPECT_EQ(view.nodes[0].problem, "") << "a node with DRA has no slots";
  add_claims(view,
             claims({claim("web", {on("gpu-0"), on("gpu-0", "1Gi"), on("gpu-1")}), claim("waits", {})}));
  const DeviceList devices = device_rows(view);
  EXPECT_EQ(devices.devices[0].memory_used, 5_GiB);
  EXPECT_EQ(devices.devices[0].compute_used_percent, 60u);
  EXPECT_EQ(devices.devices[0].slices, 1u) << "a claim is one slice";
  EXPECT_EQ(devices.memory_used, 9_GiB);
  const NodeList nodes = node_rows(view, std::nullopt);
  EXPECT_EQ(nodes.nodes[0].bookkeeper, "dra");
  EXPECT_EQ(nodes.nodes[0].memory_used, 9_GiB);
}

TEST(ViewClaims, are_rows_of_the_slices) {
  const ClusterView view = dra_node();
  SliceList rows;
  const auto all = claims({claim("web", {on("gpu-0"), on("gpu-1")}), claim("waits", {})});
  add_claims(rows, view, all, "");
  ASSERT_EQ(rows.slices.size(), 2u);
  EXPECT_EQ(rows.slices[0].pod, "pod-of-web");
  EXPECT_EQ(rows.slices[0].memory, 8_GiB);
  EXPECT_THAT(rows.slices[0].devices, ElementsAre("0", "1"));
  EXPECT_EQ(rows.slices[0].asked, "claim web");
  EXPECT_EQ(rows.slices[1].node, "") << "it waits";
  rows.slices.clear();
  add_claims(rows, view, all, "b");
  EXPECT_TRUE(rows.slices.empty());
}

TEST(ViewClaims, that_wait_are_explained_by_the_room_on_each_device) {
  ClusterView view = dra_node();
  const auto all =
      claims({claim("web", {on("gpu-0", "20Gi")}), claim("big", {}, "8Gi", 2), claim("small", {})});
  add_claims(view, all);
  const auto big = explain_claims(view, all, pod_with("big"));
  ASSERT_TRUE(big) << big.error();
  EXPECT_THAT(big->message, HasSubstr("claim big waits: node n1: device 0: 8 GiB needed, 2251 MiB free"));
  EXPECT_THAT(big->nodes, ElementsAre());
  const auto small = explain_claims(view, all, pod_with("small"));
  EXPECT_THAT(small->message, HasSubstr("node n1: has room"));
  EXPECT_THAT(small->nodes, ElementsAre("n1"));
  EXPECT_EQ(explain_claims(view, all, pod_with("web"))->message,
            "claim web has 20 GiB on device 0 of node n1, 30% compute");
  EXPECT_FALSE(explain_claims(view, all, pod_with("other")));
  EXPECT_FALSE(explain_claims(view, all, "{"));
}

TEST(ViewClaims, of_others_and_damaged_ones_are_left_out) {
  Json foreign = claim("nic", {on("gpu-0")});
  foreign["status"]["allocation"]["devices"]["results"][0]["driver"] = "nic.dev";
  foreign["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "nic.dev";
  EXPECT_TRUE(claims({foreign, 5, "x", Json::object(), Json::array()}).empty());
  ClusterView view = dra_node();
  add_claims(view, claims({claim("far", {on("gpu-7"), on("x")})}));
  EXPECT_EQ(device_rows(view).devices[1].slices, 0u);
  EXPECT_FALSE(read_claims("["));
  EXPECT_TRUE(read_claims("[]")->empty());
}

}  // namespace
}  // namespace carve::kubernetes::cli
