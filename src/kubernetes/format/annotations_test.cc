#include <gmock/gmock.h>

#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

constexpr const char* uuid = "GPU-00000000-0000-0000-0000-000000000001";

TEST(PodSlices, is_one_line_that_parses_back) {
  const std::string text = fmt::format(
      R"({{"v":1,"node":"n1","containers":{{"web":{{"parts":[["{}",2147483648,0]],"isolation":"memory",)"
      R"("policy":"fixed-share","latency_class":"batch","unit":134217728,"units":16}}}}}})",
      uuid);
  const auto slices = read_slices(text);
  ASSERT_TRUE(slices) << slices.error();
  const PlacedSlice& web = slices->containers.at("web");
  EXPECT_EQ(web.parts.at(0), (PlacedPart{*parse_uuid(uuid), 2_GiB, {}}));
  EXPECT_EQ(api::write(*slices), text);
}

TEST(PodSlices, a_part_has_three_values) {
  const std::pair<std::string, const char*> rows[] = {
      {R"(["GPU-1",5,0])", "containers.a.parts[0][0]: \"GPU-1\" is not the UUID of a device"},
      {fmt::format(R"(["{}",5])", uuid), "is not a list of 3 values"},
      {fmt::format(R"(["{}",5,0,0])", uuid), "is not a list of 3 values"},
      {fmt::format(R"(["{}",-5,0])", uuid), "containers.a.parts[0][1]"},
      {fmt::format(R"({{"device":"{}"}})", uuid), "is not a list of 3 values"}};
  for (const auto& [part, message] : rows) {
    const auto slices = read_slices(R"({"v":1,"node":"n","containers":{"a":{"parts":[)" + part + "]}}}");
    ASSERT_FALSE(slices) << part;
    EXPECT_THAT(slices.error(), HasSubstr(message));
  }
  EXPECT_THAT(read_slices(R"({"v":2})").error(),
              HasSubstr("carve.dev/slices version 2: this program reads 1"));
}

TEST(PodSlices, the_version_may_be_anywhere_but_must_not_be_missing) {
  for (const char* text : {R"( {"v" : 1, "node":"n"})", R"({"node":"n","v":1})", R"({"v":1,"node":"n"})"})
    EXPECT_TRUE(read_slices(text)) << text;
  for (const char* text : {R"({"node":"n"})", R"({"v":11,"node":"n"})", R"({"v":1,"v":2,"node":"n"})"})
    EXPECT_FALSE(read_slices(text)) << text;
}

TEST(NodeLedger, the_longest_names_fit_the_annotation) {
  NodeLedger ledger;
  for (size_t i = 0; i < max_ledger_parts; ++i)
    ledger.parts.push_back({.slice = std::string(63, 's'),
                            .pod = std::string(63, 'n') + "/" + std::string(253, 'p'),
                            .uid = std::string(36, 'u'),
                            .container = std::string(63, 'c'),
                            .device = *parse_uuid(uuid),
                            .memory = UINT64_MAX,
                            .share_bp = UINT32_MAX});
  for (size_t i = 0; i < max_change_results; ++i)
    ledger.results.push_back({.uid = std::string(36, 'u'),
                              .container = std::string(63, 'c'),
                              .memory = UINT64_MAX,
                              .refusal = std::string(max_refusal_bytes, '"')});
  const auto read = read_ledger(api::write(ledger));
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, ledger);
}

TEST(NodeDevices, is_one_line_that_parses_back) {
  const std::string text = fmt::format(
      R"({{"v":1,"boot":"b","devices":[{{"i":0,"uuid":"{}","model":"NVIDIA A10","usable":23835181056,)"
      R"("context":268435456,"migrates":true,"health":"ok"}}],"links":["X"],"cpu":64000,"memory":5,)"
      R"("mode":{{"desired":"none","effective":"memory","blocked_by":["a/web-0"]}},)"
      R"("policy":{{"effective":"fixed-share","blocked_by":[]}},"placement":"spread",)"
      R"("best_effort":"refuse","enforcement":"library","simulated":true}})",
      uuid);
  const auto devices = read_devices(text);
  ASSERT_TRUE(devices) << devices.error();
  EXPECT_EQ(devices->mode.desired, NodeMode::none);
  EXPECT_EQ(devices->mode.effective, NodeMode::memory);
  EXPECT_EQ(devices->best_effort, BestEffort::refuse);
  EXPECT_EQ(api::write(*devices), text);
  EXPECT_THAT(read_devices(R"({"v":1,"mode":{"effective":"mps"}})").error(), HasSubstr("memory-and-compute"));
}

}  // namespace
}  // namespace carve::kubernetes
