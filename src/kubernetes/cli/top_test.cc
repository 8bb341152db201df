#include "kubernetes/cli/top.h"

#include <gmock/gmock.h>

#include "kubernetes/cli/kubectl_command.h"

namespace carve::kubernetes::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* nodes_json =
    R"({"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"n2","uid":"2"}},)"
    R"({"metadata":{"name":"n1","uid":"1"}},{"metadata":{"name":"n3","uid":"3"}}]})";
constexpr const char* agents_json =
    R"({"metadata":{"resourceVersion":"5"},"items":[)"
    R"({"metadata":{"name":"carve-agent-a"},"spec":{"nodeName":"n1"},"status":{"containerStatuses":[)"
    R"({"name":"agent","ready":true,"state":{"running":{}}},{"name":"kubelet","ready":false}]}},)"
    R"({"metadata":{"name":"carve-agent-b"},"spec":{"nodeName":"n2"},"status":{"containerStatuses":[)"
    R"({"name":"agent","ready":false},{"name":"kubelet","ready":true}]}}]})";

std::string top_of(const std::string& name_space) {
  return R"({"devices":[{"index":0,"uuid":"GPU-1","name":"NVIDIA A10","usable_bytes":23835181056,)"
         R"("used_bytes":1073741824,"utilization_percent":40,"slices":1,"new":1}],)"
         R"("slices":[{"name":"s","state":"granted","holder":{"pod":{"namespace":")" +
         name_space +
         R"(","name":"web","uid":"u","container":"main"}},"parts":[{"index":0,"quota_bytes":2147483648,)"
         R"("charged_bytes":1073741824,"used_bytes":536870912,"share_bp":3000,)"
         R"("compute":{"achieved_1s_bp":2900}}]}]})";
}

TEST(Top, calls_an_agent_if_its_container_is_ready) {
  const auto agents = agents_of(nodes_json, agents_json);
  ASSERT_TRUE(agents) << agents.error();
  ASSERT_EQ(agents->size(), 3u);
  EXPECT_EQ((*agents)[0].name, "carve-agent-a");
  EXPECT_EQ((*agents)[0].problem, "");
  EXPECT_EQ((*agents)[1].problem, "container agent of pod carve-agent-b is not ready");
  EXPECT_EQ((*agents)[2].problem, "no agent runs on it");
}

TEST(Top, prints_the_agents_measurements) {
  const TopList list = top_rows({{"n1", top_of("b")}, {"n2", top_of("a")}}, "");
  ASSERT_EQ(list.slices.size(), 2u);
  EXPECT_EQ(list.slices[0].namespace_, "a");
  EXPECT_EQ(list.slices[0].node, "n2");
  EXPECT_EQ(table_text(slice_table(list, Form::table)),
            "NAMESPACE  POD  CONTAINER  NODE  DEVICE  CHARGED      COMPUTE\n"
            "a          web  main       n2    0       1 GiB/2 GiB  29%/30%\n"
            "b          web  main       n1    0       1 GiB/2 GiB  29%/30%\n");
  EXPECT_THAT(table_text(slice_table(list, Form::wide)), HasSubstr("512 MiB"));
  EXPECT_EQ(names_text(slice_table(list, Form::name)), "pod/web\n");
  EXPECT_THAT(table_text(device_table(list)), HasSubstr("NVIDIA A10  1 GiB/22731 MiB  40%          1"));
  EXPECT_EQ(top_rows({{"n1", top_of("b")}, {"n2", top_of("a")}}, "b").slices.size(), 1u);
}

TEST(Top, reports_nodes_that_do_not_respond) {
  const TopList list = top_rows({{"n1", top_of("a")},
                                 {"n2", tl::unexpected(std::string("no agent runs on it"))},
                                 {"n3", std::string("{")},
                                 {"n4", std::string(R"({"devices":5})")}},
                                "");
  EXPECT_EQ(list.slices.size(), 1u);
  ASSERT_EQ(list.silent.size(), 3u);
  EXPECT_EQ(list.silent[0].reason, "no agent runs on it");
  EXPECT_EQ(list.silent[2].node, "n4");
}

TEST(Top, invalid_lists_are_rejected) {
  for (const char* text : {"", "{", "text", "[1", R"({"items":[{"metadata":{"name":)"}) {
    EXPECT_FALSE(agents_of(nodes_json, text)) << text;
    EXPECT_FALSE(agents_of(text, agents_json)) << text;
  }
  const auto odd =
      agents_of(nodes_json, R"({"items":[[],{"spec":{"nodeName":5}},{"status":{"containerStatuses":{}}}]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ((*odd)[0].problem, "no agent runs on it");
}

}  // namespace
}  // namespace carve::kubernetes::cli
