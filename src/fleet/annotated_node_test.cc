#include "fleet/annotated_node.h"

#include <gmock/gmock.h>

#include <set>

namespace carve::fleet {
namespace {

using testing::HasSubstr;

constexpr const char* first = "GPU-00000000-0000-0000-0000-000000000001";
constexpr const char* second = "GPU-00000000-0000-0000-0000-000000000002";

kubernetes::ObjectMeta node_with(const std::string& devices, const std::string& more = "",
                                 const std::string& cordon = "") {
  kubernetes::ObjectMeta out;
  out.name = "n1";
  out.annotations[kubernetes::devices_annotation] =
      fmt::format(R"({{"v":1,"devices":[{}]{}}})", devices, more);
  if (!cordon.empty()) out.annotations[kubernetes::cordon_annotation] = cordon;
  return out;
}

std::string device(const char* uuid, const std::string& more = "") {
  return fmt::format(R"({{"uuid":"{}","model":"NVIDIA A10","usable":1073741824{}}})", uuid, more);
}

TEST(AnnotatedNode, is_read_from_its_annotations) {
  const auto node = read_node(node_with(device(first) + "," + device(second, R"(,"health":"xid 79")"),
                                        R"(,"links":["X NV12","NV12 X"],"cpu":64000,"placement":"spread",)"
                                        R"("mode":{"desired":"none","effective":"memory"},)"
                                        R"("policy":{"effective":"native-burst-share"})"));
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->name, "n1");
  EXPECT_EQ(node->kind, (NodeKind{NodeMode::memory, true, Policy::native_burst_share}));
  EXPECT_EQ(node->devices.at(0).usable, 1_GiB);
  EXPECT_EQ(node->devices.at(0).trouble, "");
  EXPECT_EQ(node->devices.at(1).trouble, "xid 79");
  EXPECT_EQ(node->links->link(0, 1), place::Link::nvlink);
  EXPECT_EQ(node->placement, Strategy::spread);
}

TEST(AnnotatedNode, a_cordoned_device_serves_nothing_new) {
  const auto node =
      read_node(node_with(device(first) + "," + device(second), "", fmt::format(" {} , ", second)));
  ASSERT_TRUE(node) << node.error();
  EXPECT_EQ(node->devices.at(0).trouble, "");
  EXPECT_EQ(node->devices.at(1).trouble, "cordoned");
}

TEST(AnnotatedNode, unreadable_annotations_are_not_used) {
  const std::pair<kubernetes::ObjectMeta, const char*> rows[] = {
      {{}, "it has no annotation carve.dev/devices"},
      {node_with("", R"(,"new":1)"), "new"},
      {node_with(device("GPU-1")), "is not the UUID of a device"},
      {node_with(device(first) + "," + device(first)), "is listed twice"},
      {node_with(device(first), "", "GPU-7"), "carve.dev/cordon: 'GPU-7' is not the UUID of a device"},
      {node_with(device(first), R"(,"links":["X","Y"])"), "links: line"},
      {node_with(device(first), R"(,"mode":{"effective":"mps"})"), "mode.effective"}};
  for (const auto& [object, message] : rows) {
    const auto node = read_node(object);
    ASSERT_FALSE(node) << message;
    EXPECT_THAT(node.error(), HasSubstr(message));
  }
  std::string many;
  for (int i = 0; i < 33; ++i)
    many +=
        (i == 0 ? "" : ",") + device(fmt::format("GPU-00000000-0000-0000-0000-0000000001{:02}", i).c_str());
  EXPECT_THAT(read_node(node_with(many)).error(), HasSubstr("33 devices; a node can have at most 32"));
}

TEST(AnnotatedNode, each_kind_has_its_own_number) {
  std::set<unsigned> numbers;
  for (uint32_t mode = 0; mode < 4; ++mode)
    for (const bool is_named : {false, true})
      for (const std::optional<Policy> policy :
           {std::optional<Policy>(), std::optional(Policy::fixed_share),
            std::optional(Policy::guaranteed_burst_share), std::optional(Policy::native_burst_share)})
        for (const MemoryUnit unit : {MemoryUnit::gib, MemoryUnit::mib_128})
          numbers.insert(number_of({static_cast<NodeMode>(mode), is_named, policy, unit}));
  EXPECT_EQ(numbers.size(), node_kinds);
  EXPECT_LT(*numbers.rbegin(), node_kinds);
}

}  // namespace
}  // namespace carve::fleet
