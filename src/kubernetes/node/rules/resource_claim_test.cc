#include "kubernetes/node/rules/resource_claim.h"

#include <gmock/gmock.h>

#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using api::Json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t usable_bytes = 22731ull << 20;

ClaimContext node_with(uint32_t devices) {
  ClaimContext out{.node = "n1"};
  for (uint32_t i = 0; i < devices; ++i) {
    api::Device& device = out.devices.emplace_back();
    device.index = i;
    device.uuid = fmt::format("GPU-00000000-0000-0000-0000-0000000000{:02}", i);
    device.usable_bytes = usable_bytes;
  }
  return out;
}

Json result(const std::string& device, Json consumed, const std::string& pool = "n1") {
  Json out = {{"request", "gpu"},
              {"driver", "carve.dev"},
              {"pool", pool},
              {"device", device},
              {"shareID", "share-" + device}};
  if (!consumed.is_null()) out["consumedCapacity"] = std::move(consumed);
  return out;
}
Json amounts_of(const char* memory, const char* compute) {
  return {{"memory", memory}, {"compute", compute}, {"slices", "1"}};
}

Json parameters(Json value, const char* source = "FromClaim") {
  return {{"source", source}, {"opaque", {{"driver", "carve.dev"}, {"parameters", std::move(value)}}}};
}
Json slice_parameters(Json more) {
  more["apiVersion"] = "carve.dev/v1";
  more["kind"] = "SliceParameters";
  return more;
}

// The lists are no Json, because compilers differ in whether braces around one Json are a list.
Json claim_with(std::vector<Json> results, std::vector<Json> config = {}) {
  return {{"metadata", {{"namespace", "a"}, {"name", "web"}, {"uid", "0b6c-1d2f"}}},
          {"status",
           {{"allocation", {{"devices", {{"results", std::move(results)}, {"config", std::move(config)}}}}},
            {"reservedFor",
             {{{"resource", "pods"}, {"name", "web-0"}, {"uid", "u0"}},
              {{"resource", "pods"}, {"name", "web-1"}, {"uid", "u1"}}}}}}};
}

// Returns the decision about the claim on a node with 2 devices, or the message.
Result<ClaimDecision, std::string> decide(const Json& claim, ClaimContext context = node_with(2)) {
  const auto read = read_claim(claim.dump());
  if (!read) return tl::unexpected(read.error());
  return decide_claim(context, *read);
}
std::string message_of(const Json& claim) {
  const auto decided = decide(claim);
  return decided ? "" : decided.error();
}

TEST(ResourceClaim, becomes_one_slice_with_all_its_devices_of_the_node) {
  const Json claim =
      claim_with({result("gpu-1", amounts_of("4Gi", "30")),
                  result("gpu-0", amounts_of("4Gi", "30")),
                  result("gpu-0", amounts_of("1Gi", "0"), "n2"),
                  {{"request", "nic"}, {"driver", "other.dev"}, {"pool", "n1"}, {"device", "x"}}});
  const auto decided = decide(claim);
  ASSERT_TRUE(decided) << decided.error();
  const api::SliceRequest& request = decided->request;
  ASSERT_EQ(request.placed.size(), 2u);
  EXPECT_EQ(request.placed[0].device, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(request.placed[0].memory_bytes, 4ull << 30);
  EXPECT_EQ(request.placed[0].share_bp, 3000u);
  EXPECT_EQ(request.holder, (Holder{.pod = {}, .claim = "0b6c-1d2f"}));
  EXPECT_EQ(request.amounts.isolation, Isolation::memory_and_compute);
  EXPECT_FALSE(request.amounts.exclusive);
  EXPECT_EQ(request.account, "a");
  EXPECT_THAT(decided->devices,
              ElementsAre(PreparedDevice{"gpu", "n1", "gpu-1", "share-gpu-1", "carve.dev/claim=c-0b6c-1d2f"},
                          PreparedDevice{"gpu", "n1", "gpu-0", "share-gpu-0", ""}));
  const auto read = read_claim(claim.dump());
  EXPECT_THAT(read->pods, ElementsAre(ClaimPod{"a", "web-0", "u0"}, ClaimPod{"a", "web-1", "u1"}));
}

TEST(ResourceClaim, without_a_share_has_its_memory_isolated) {
  EXPECT_EQ(decide(claim_with({result("gpu-0", amounts_of("4Gi", "0"))}))->request.amounts.isolation,
            Isolation::memory);
  ClaimContext open = node_with(1);
  open.mode = NodeMode::none;
  EXPECT_EQ(decide(claim_with({result("gpu-0", amounts_of("4Gi", "0"))}), open)->request.amounts.isolation,
            Isolation::none);
}

TEST(ResourceClaim, with_two_requests_for_one_device_gets_both_amounts_there) {
  const auto decided = decide(
      claim_with({result("gpu-0", amounts_of("4Gi", "30")), result("gpu-0", amounts_of("1Gi", "20"))}));
  ASSERT_TRUE(decided) << decided.error();
  ASSERT_EQ(decided->request.placed.size(), 1u);
  EXPECT_EQ(decided->request.placed[0].memory_bytes, 5ull << 30);
  EXPECT_EQ(decided->request.placed[0].share_bp, 5000u);
  EXPECT_EQ(decided->devices.size(), 2u);
}

TEST(ResourceClaim, has_whole_devices_if_they_are_not_shared) {
  const auto decided = decide(claim_with({result("gpu-0", nullptr), result("gpu-1", nullptr)}));
  ASSERT_TRUE(decided) << decided.error();
  EXPECT_TRUE(decided->request.amounts.exclusive);
  EXPECT_FALSE(decided->request.amounts.isolation);
  EXPECT_EQ(decided->request.placed[0].memory_bytes, 0u);
  EXPECT_THAT(message_of(claim_with({result("gpu-0", nullptr), result("gpu-1", amounts_of("1Gi", "0"))})),
              HasSubstr("whole devices and parts of devices"));
}

TEST(ResourceClaim, takes_parameters_of_the_claim_before_those_of_its_class) {
  const Json of_class =
      parameters(slice_parameters({{"latencyClass", "batch"}, {"isolation", "memory"}}), "FromClass");
  const Json of_claim = parameters(slice_parameters({{"latencyClass", "latency"}}));
  const auto decided = decide(claim_with({result("gpu-0", amounts_of("4Gi", "30"))}, {of_class, of_claim}));
  ASSERT_TRUE(decided) << decided.error();
  EXPECT_EQ(decided->request.amounts.latency_class, LatencyClass::latency);
  EXPECT_EQ(decided->request.amounts.isolation, Isolation::memory);
}

TEST(ResourceClaim, is_rejected_with_a_message_for_its_user) {
  const Json good = result("gpu-0", amounts_of("4Gi", "30"));
  const auto with_parameters = [&](Json value) { return claim_with({good}, {parameters(std::move(value))}); };
  Json admin = good, unallocated = claim_with({good});
  admin["adminAccess"] = true;
  unallocated["status"].erase("allocation");
  Json many = Json::array();
  for (int i = 0; i < 33; ++i) many.push_back(good);
  const std::pair<Json, const char*> rows[] = {
      {unallocated, "claim a/web: it is not allocated"},
      {claim_with(Json::array()), "it has no device of node n1"},
      {claim_with({result("gpu-0", amounts_of("1Gi", "0"), "n2")}), "it has no device of node n1"},
      {claim_with({result("gpu-2", amounts_of("1Gi", "0"))}), "this node has no device gpu-2"},
      {claim_with({result("gpu-0", amounts_of("24Gi", "0"))}),
       "consumes 24 GiB of memory, but the device has"},
      {claim_with({result("gpu-0", amounts_of("0", "10"))}), "consumes no memory"},
      {claim_with({result("gpu-0", amounts_of("-1", "10"))}), "'-1' is not an amount of memory"},
      {claim_with({result("gpu-0", amounts_of("1e99Gi", "10"))}), "is not an amount of memory"},
      {claim_with({result("gpu-0", amounts_of("1Gi", "101"))}), "consumes 101 % of compute"},
      {claim_with({result("gpu-0", amounts_of("1Gi", "500m"))}), "'500m' is not an amount of compute"},
      {claim_with({result("gpu-0", amounts_of("20Gi", "0")), result("gpu-0", amounts_of("20Gi", "0"))}),
       "more than the device has"},
      {claim_with({admin}), "adminAccess is not supported"},
      {claim_with(many), "claim a/web: it has 33 devices; at most 32"},
      {with_parameters({{"apiVersion", "carve.dev/v1"}, {"kind", "Slice"}}),
       "not 'carve.dev/v1' and 'Slice'"},
      {with_parameters("text"), "must have apiVersion carve.dev/v1"},
      {with_parameters(slice_parameters({{"colour", "blue"}})), "unknown field 'colour'"},
      {with_parameters(slice_parameters({{"latencyClass", "fast"}})), "latencyClass"},
      {with_parameters(slice_parameters({{"isolation", 7}})), "isolation"},
      {with_parameters(slice_parameters({{std::string(10'000, 'x'), 1}})), "unknown field 'xxx"},
      {claim_with({good}, {parameters(slice_parameters({{"isolation", "memory"}})),
                           parameters(slice_parameters({{"isolation", "none"}}))}),
       "isolation has two values"}};
  for (const auto& [claim, message] : rows) {
    EXPECT_THAT(message_of(claim), HasSubstr(message));
    EXPECT_LT(message_of(claim).size(), 600u);
  }
}

TEST(ResourceClaim, with_32_results_on_17_devices_is_more_than_a_slice) {
  Json results = Json::array();
  for (int i = 0; i < 32; ++i)
    results.push_back(result(fmt::format("gpu-{}", i % 17), amounts_of("1Mi", "1")));
  const auto decided = decide(claim_with(results), node_with(17));
  ASSERT_FALSE(decided);
  EXPECT_THAT(decided.error(), HasSubstr("17 devices of this node; a slice has at most 16"));
}

TEST(ResourceClaim, with_long_names_is_read) {
  Json claim = claim_with({result(std::string(253, 'd'), amounts_of("1Gi", "0"))});
  claim["metadata"]["name"] = std::string(253, 'n');
  claim["status"]["reservedFor"].push_back(
      {{"resource", "pods"}, {"name", std::string(253, 'p')}, {"uid", "u2"}});
  claim["status"]["reservedFor"].push_back(
      {{"resource", "pods"}, {"name", std::string(254, 'p')}, {"uid", "u3"}});
  claim["status"]["reservedFor"].push_back({{"resource", "jobs"}, {"name", "j"}, {"uid", "u4"}});
  const auto read = read_claim(claim.dump());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->pods.size(), 3u) << "a name that no pod can have, and a job, are left out";
  EXPECT_THAT(message_of(claim), HasSubstr("this node has no device ddd"));
  EXPECT_FALSE(read_claim("{"));
  EXPECT_FALSE(read_claim("[]"));
  EXPECT_FALSE(read_claim(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace carve::kubernetes::node
