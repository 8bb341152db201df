#include "node/settings/node_labels.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace carve::node {
namespace {

using testing::HasSubstr;

struct NodeLabelsTest : testing::Test {
  std::filesystem::path folder = [] {
    char name[] = "/tmp/carve-labels-XXXXXX";
    return std::filesystem::path(mkdtemp(name));
  }();
  ~NodeLabelsTest() override { std::filesystem::remove_all(folder); }
  Outcome<NodeLabels> start(const LabelChanges& given = {}) const {
    return NodeLabels::open(folder / "labels.json", given);
  }
};

TEST_F(NodeLabelsTest, keep_labels_across_a_restart) {
  ASSERT_TRUE(start({{"zone", "a"}, {"rack", "7"}}));
  auto labels = start({{"zone", "b"}, {"rack", std::nullopt}});
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->all(), (std::map<std::string, std::string>{{"zone", "b"}}));
  ASSERT_TRUE(labels->change("row", "3"));
  EXPECT_EQ(start()->all().at("row"), "3");
}

TEST_F(NodeLabelsTest, reject_two_names_of_one_setting_with_different_values) {
  auto labels = start({{"carve.dev/compute-policy", "native-burst-share"}});
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->policy(), Policy::native_burst_share);
  EXPECT_TRUE(labels->change(policy_label, "native-burst-share")) << "it has the same value";
  ASSERT_TRUE(labels->change("gpuMemoryUnit", "128MiB"));
  EXPECT_EQ(labels->memory_unit(), MemoryUnit::mib_128);
  const auto other = labels->change("carve.dev/memory-unit", "1GiB");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              HasSubstr("the label gpuMemoryUnit sets the same property and is 128MiB"));
  EXPECT_TRUE(labels->change("gpuMemoryUnit", "1GiB")) << "the unit label can be edited";
  EXPECT_THAT(labels->change("gpuMemoryUnit", "64MiB").error().message, HasSubstr("label gpuMemoryUnit"));
  ASSERT_TRUE(labels->change("gpuMemoryUnit", std::nullopt));
  EXPECT_EQ(labels->memory_unit(), std::nullopt);
}

TEST_F(NodeLabelsTest, require_a_restart_between_removing_and_adding_a_system_label) {
  auto labels = start({{policy_label, "fixed-share"}});
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->policy(), Policy::fixed_share);
  EXPECT_TRUE(labels->change(policy_label, "fixed-share")) << "setting the same value is not a change";
  const auto edited = labels->change(policy_label, "native-burst-share");
  ASSERT_FALSE(edited);
  EXPECT_THAT(edited.error().message,
              HasSubstr("is a system label, so its value 'fixed-share' on this node cannot be edited"));
  EXPECT_THAT(start({{policy_label, "native-burst-share"}}).error().message, HasSubstr("cannot be edited"));

  ASSERT_TRUE(labels->change(policy_label, std::nullopt));
  EXPECT_FALSE(labels->policy());
  EXPECT_THAT(labels->change(policy_label, "native-burst-share").error().message,
              HasSubstr("restart the agent"));
  EXPECT_EQ(start({{policy_label, "native-burst-share"}})->policy(), Policy::native_burst_share);
}

TEST_F(NodeLabelsTest, change_nothing_if_a_label_cannot_be_stored) {
  auto labels = start({{"zone", "a"}});
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(labels->change("zone", "b"));
  EXPECT_EQ(labels->all().at("zone"), "a");
  mkdir(folder.c_str(), 0700);
  std::ofstream(folder / "labels.json") << "{\"labels\": [";
  EXPECT_THAT(start().error().message, HasSubstr("labels.json: the document is not JSON"));
}

TEST_F(NodeLabelsTest, reject_invalid_values) {
  EXPECT_THAT(start({{policy_label, "fast"}}).error().message,
              HasSubstr("'fast' is not a known policy; use fixed-share"));
  LabelChanges many;
  for (int i = 0; i < 65; ++i) many["k" + std::to_string(i)] = "v";
  EXPECT_THAT(start(many).error().message, HasSubstr("at most 64 labels"));
}

}  // namespace
}  // namespace carve::node
