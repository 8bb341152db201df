#include "kubernetes/coordinator/webhook/namespace_rules.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

kubernetes::PodRequest request_in(const std::string& dialect, bool is_exclusive = false) {
  kubernetes::PodRequest out{.dialect = dialect};
  out.containers["web"].amounts = {.memory_bytes = 2ull << 30};
  if (is_exclusive) out.containers["web"].amounts.exclusive = true;
  return out;
}

TEST(NamespaceRules, the_label_overrides_the_clusters_setting) {
  const NamespaceRules silent{.name = "a"}, on{.name = "a", .is_sharing = true},
      off{.name = "a", .is_sharing = false};
  EXPECT_EQ(refusal_in(silent, request_in("carve"), true), "");
  EXPECT_THAT(refusal_in(silent, request_in("carve"), false),
              HasSubstr("container web: sharing is disabled in namespace a; request whole devices"));
  EXPECT_EQ(refusal_in(on, request_in("carve"), false), "");
  EXPECT_NE(refusal_in(off, request_in("ack"), true), "");
  EXPECT_EQ(refusal_in(off, request_in("carve", true), true), "") << "whole devices are not shared";
}

TEST(NamespaceRules, a_quota_on_a_foreign_resource_rejects_its_dialect) {
  const NamespaceRules rules{.name = "a",
                             .quota_keys = {"requests.cpu", "requests.aliyun.com/gpu-mem", "limits.memory"}};
  EXPECT_EQ(refusal_in(rules, request_in("ack"), true),
            "namespace a has a quota on requests.aliyun.com/gpu-mem, which counts nothing here; set "
            "requests.carve.dev/memory");
  EXPECT_EQ(refusal_in(rules, request_in("vke"), true), "");
  EXPECT_EQ(refusal_in({.name = "a", .quota_keys = {"requests.carve.dev/memory"}}, request_in("carve"), true),
            "");
  EXPECT_THAT(refusal_in({.name = "a", .quota_keys = {"requests.vke.volcengine.com/mgpu-core"}},
                         request_in("vke"), true),
              HasSubstr("set requests.carve.dev/compute"));
}

TEST(NamespaceRules, rejects_a_request_without_the_amount_that_a_quota_counts) {
  const NamespaceRules memory{.name = "a", .quota_keys = {"requests.carve.dev/memory"}},
      compute{.name = "a", .quota_keys = {"requests.carve.dev/compute"}},
      devices{.name = "a", .quota_keys = {"requests.carve.dev/devices"}};
  kubernetes::PodRequest part{.dialect = "hami"}, amount{.dialect = "carve"}, whole{.dialect = "carve"};
  part.containers["web"].amounts = {.memory_bp = 10'000, .share_bp = 5'000, .devices = 1};
  amount.containers["web"].amounts = {.memory_bytes = 1 << 30, .devices = 1};
  whole.containers["web"].amounts = {.devices = 1, .exclusive = true};
  EXPECT_EQ(refusal_in(memory, part, true),
            "container web: namespace a has a quota on requests.carve.dev/memory, which does not count a "
            "percentage of a device's memory; request an amount of memory");
  EXPECT_THAT(refusal_in(memory, whole, true), HasSubstr("which does not count whole devices"));
  EXPECT_EQ(refusal_in(memory, amount, true), "");
  EXPECT_EQ(
      refusal_in(compute, amount, true),
      "container web: namespace a has a quota on requests.carve.dev/compute; request a share of compute "
      "as well");
  EXPECT_EQ(refusal_in(compute, part, true), "");
  EXPECT_EQ(refusal_in(compute, whole, true), "") << "each whole device counts as 100";
  EXPECT_THAT(refusal_in(devices, whole, true),
              HasSubstr("which counts nothing; set requests.carve.dev/compute"));
  EXPECT_THAT(refusal_in(devices, amount, true), HasSubstr("counts nothing"));
}

TEST(NamespaceRules, a_pod_cannot_choose_another_account_than_its_namespace) {
  const NamespaceRules rules{.name = "a", .account = "research"};
  EXPECT_EQ(account_refusal_in(rules, "production"),
            "label carve.dev/account: account 'research' pays for the pods of namespace a; leave out the "
            "label, or write carve.dev/account: research");
  EXPECT_EQ(account_refusal_in(rules, "research"), "");
  EXPECT_EQ(account_refusal_in(rules, ""), "");
  EXPECT_EQ(account_refusal_in({.name = "a"}, "production"), "") << "the namespace has no account";
}

TEST(NamespaceRules, reads_the_keys_of_all_quotas) {
  const auto keys = read_quota_keys(
      R"({"kind":"ResourceQuotaList","items":[{"spec":{"hard":{"pods":"5","requests.carve.dev/memory":"8Gi"}}},)"
      R"({"spec":{}},{"spec":{"hard":{"cpu":1}}}]})");
  ASSERT_TRUE(keys) << keys.error();
  EXPECT_THAT(*keys, ElementsAre("pods", "requests.carve.dev/memory", "cpu"));
  for (const char* text : {"", "[]", "{}", R"({"items":{}})", "null"}) EXPECT_FALSE(read_quota_keys(text));
  EXPECT_TRUE(read_quota_keys(R"({"items":[1,null,{"spec":[]},{"spec":{"hard":5}}]})")->empty());
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
