#include "kubernetes/node/rules/resource_slice.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::node {
namespace {

using api::Json;
using testing::ElementsAre;

// Compares without the order of the keys.
MATCHER_P(IsJson, text, "") { return nlohmann::json(arg) == nlohmann::json::parse(text); }

ResourceSliceInput node_with_two_devices() {
  ResourceSliceInput out{.node = "n1", .node_uid = "node-uid"};
  for (uint32_t i = 0; i < 2; ++i) {
    api::Device& device = out.agent.devices.emplace_back();
    device.index = i;
    device.uuid = fmt::format("GPU-00000000-0000-0000-0000-00000000000{}", i);
    device.name = "NVIDIA A10";
    device.usable_bytes = 22731ull << 20;
    device.max_slices = 16;
  }
  return out;
}
Json device(const ResourceSliceInput& in, size_t index = 0) {
  return resource_slice(in)["spec"]["devices"][index];
}

TEST(ResourceSlice, describes_the_devices_of_the_node) {
  ResourceSliceInput in = node_with_two_devices();
  std::swap(in.agent.devices[0], in.agent.devices[1]);
  const Json object = resource_slice(in);
  EXPECT_EQ(object["metadata"]["name"], "n1-carve-0");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], "node-uid");
  EXPECT_EQ(object["spec"]["pool"], (Json{{"name", "n1"}, {"generation", 1}, {"resourceSliceCount", 1}}));
  const Json& first = object["spec"]["devices"][0];
  EXPECT_EQ(first["name"], "gpu-0");
  EXPECT_EQ(first["allowMultipleAllocations"], true);
  EXPECT_EQ(first["attributes"]["uuid"]["string"], "GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_EQ(first["attributes"]["policy"]["string"], "fixed-share");
  EXPECT_THAT(first["capacity"]["memory"],
              IsJson(R"({"value":"22731Mi","requestPolicy":{"default":"22731Mi","validRange":
                            {"min":"1Mi","max":"22731Mi","step":"1Mi"}}})"));
  EXPECT_EQ(
      first["capacity"]["compute"],
      Json::parse(
          R"({"value":"100","requestPolicy":{"default":"0","validRange":{"min":"0","max":"100","step":"1"}}})"));
  EXPECT_THAT(first["capacity"]["slices"],
              IsJson(R"({"value":"16","requestPolicy":{"default":"1","validValues":["1"]}})"));
  EXPECT_FALSE(first.contains("taints"));
}

TEST(ResourceSlice, depends_on_the_mode_and_the_policy) {
  ResourceSliceInput in = node_with_two_devices();
  in.agent.devices[0].policy.effective = Policy::native_burst_share;
  EXPECT_EQ(device(in)["capacity"]["compute"]["value"], "1600");
  in.mode = NodeMode::memory;
  EXPECT_FALSE(device(in)["capacity"].contains("compute"));
  in.mode = NodeMode::exclusive;
  EXPECT_EQ(device(in)["allowMultipleAllocations"], false);
  EXPECT_THAT(device(in)["capacity"], IsJson(R"({"memory":{"value":"22731Mi"}})"));
}

TEST(ResourceSlice, offers_no_slice_that_is_smaller_than_a_context) {
  ResourceSliceInput in = node_with_two_devices();
  in.agent.devices[0].context_bytes = (256 << 20) + 1;
  const char* const min = "/capacity/memory/requestPolicy/validRange/min";
  EXPECT_EQ(device(in).at(Json::json_pointer(min)), "257Mi");
  in.agent.node.contexts_in_slice = false;
  EXPECT_EQ(device(in).at(Json::json_pointer(min)), "1Mi");
}

TEST(ResourceSlice, taints_devices_that_take_no_new_claims) {
  ResourceSliceInput in = node_with_two_devices();
  in.agent.devices[0].health = {HealthState::xid, "Xid 79"};
  in.agent.devices[0].last_xid = 79;
  EXPECT_THAT(device(in)["taints"],
              IsJson(R"([{"key":"carve.dev/unhealthy","value":"xid-79","effect":"NoSchedule"}])"));
  in.ends_pods = true;
  EXPECT_EQ(device(in)["taints"][0]["effect"], "NoExecute");
  in.cordoned = read_cordon("x,GPU-00000000-0000-0000-0000-000000000001,");
  EXPECT_THAT(device(in, 1)["taints"], IsJson(R"([{"key":"carve.dev/cordon","effect":"NoSchedule"}])"));
  in.blocked = "setting-pending";
  EXPECT_EQ(device(in, 1)["taints"].size(), 2u);
  EXPECT_THAT(device_conditions("n1", in.agent), ElementsAre(DeviceCondition{"n1", "gpu-0", false, "Xid 79"},
                                                             DeviceCondition{"n1", "gpu-1", true, ""}));
}

TEST(ResourceSlice, keeps_a_device_that_is_gone_while_a_claim_has_it) {
  ResourceSliceInput in = node_with_two_devices();
  const std::string gone = in.agent.devices[1].uuid;
  in.agent.devices.pop_back();
  EXPECT_EQ(resource_slice(in)["spec"]["devices"].size(), 1u);
  api::SlicePart part;
  part.index = 1;
  part.uuid = gone;
  part.usable_bytes = 22731ull << 20;
  in.agent.slices.emplace_back().parts.push_back(part);
  EXPECT_EQ(device(in, 1)["name"], "gpu-1");
  EXPECT_EQ(device(in, 1)["taints"][0]["value"], "lost");
}

TEST(ResourceSlice, is_written_again_only_if_it_differs) {
  ResourceSliceInput in = node_with_two_devices();
  in.agent.devices[0].health = {HealthState::lost, "gone"};
  Json stored = resource_slice(in);
  stored["metadata"]["resourceVersion"] = "7";
  stored["spec"]["pool"]["generation"] = 5;
  stored["spec"]["devices"][0]["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(updated_resource_slice(stored, resource_slice(in), 5).is_null());
  EXPECT_EQ(updated_resource_slice(stored, resource_slice(in), 9)["spec"]["pool"]["generation"], 10)
      << "another program has lowered it";
  in.cordoned = read_cordon(in.agent.devices[1].uuid);
  const Json next = updated_resource_slice(stored, resource_slice(in), 5);
  EXPECT_EQ(next["spec"]["pool"]["generation"], 6);
  EXPECT_EQ(next["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(next["spec"]["devices"][0]["taints"][0]["timeAdded"], "2026-01-01T00:00:00Z");
  EXPECT_FALSE(updated_resource_slice(Json::object(), resource_slice(in), 0).is_null());
}

TEST(ResourceSlice, of_a_node_with_a_long_name_has_a_short_one) {
  const std::string a = resource_slice_name(std::string(252, 'n') + "a"),
                    b = resource_slice_name(std::string(252, 'n') + "b");
  EXPECT_LE(a.size(), 253u);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace carve::kubernetes::node
