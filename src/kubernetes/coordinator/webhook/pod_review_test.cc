#include "kubernetes/coordinator/webhook/pod_review.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include "dialects/pod/testing/dialect_rows.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;
using ::testing::HasSubstr;

Json review_of(const Json& pod) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request", {{"uid", "r1"}, {"operation", "CREATE"}, {"namespace", "a"}, {"object", pod}}}};
}

Json pod_with(const Json& limits) {
  return {{"metadata", {{"generateName", "binpack-"}}},
          {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}, {"resources", {{"limits", limits}}}}}}}}};
}

Json response_to(const Json& pod, const dialects::PodSettings& settings = {}) {
  const auto review = review_pod(review_of(pod).dump(), settings);
  EXPECT_TRUE(review) << review.error();
  return review ? (*api::parse(review->answer))["response"] : Json();
}

Json patched(const Json& pod, const Json& response) {
  const auto text = response["patch"].get<std::string>();
  std::string bytes(text.size(), '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  EXPECT_GT(length, 0);
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  return pod.patch(*api::parse(bytes));
}

TEST(PodReview, the_patch_produces_the_admitted_pod) {
  dialects::PodSettings settings;
  settings.unit = MemoryUnit::mib_128;
  const Json pod = pod_with({{"aliyun.com/gpu-mem", "16"}});
  const Json response = response_to(pod, settings);
  EXPECT_EQ(response["uid"], "r1");
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const Json out = patched(pod, response);
  EXPECT_EQ(out["spec"]["containers"][0]["resources"]["limits"]["carve.dev/memory"], "2Gi");
  EXPECT_EQ(out["spec"]["schedulerName"], "carve-scheduler");
  EXPECT_EQ(out["metadata"]["labels"]["carve.dev/sliced"], "true");
  EXPECT_EQ(out["metadata"]["generateName"], "binpack-");
}

TEST(PodReview, a_pod_without_a_request_is_not_patched) {
  const Json response = response_to(pod_with({{"cpu", "1"}}));
  EXPECT_EQ(response["allowed"], true);
  EXPECT_FALSE(response.contains("patch"));
}

TEST(PodReview, a_rejection_contains_every_message) {
  Json pod = pod_with({{"carve.dev/memory", "4096"}});
  pod["spec"]["hostPID"] = true;
  const Json response = response_to(pod);
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"]["code"], 422);
  EXPECT_THAT(response["status"]["message"].get<std::string>(),
              HasSubstr("carve.dev/memory: 4096 is 4096 bytes; write 4Gi or 4096Mi"));
  EXPECT_THAT(response["status"]["message"].get<std::string>(), HasSubstr("hostPID"));
}

TEST(PodReview, the_namespaces_rules_are_applied_last) {
  Json pod = pod_with({{"aliyun.com/gpu-mem", "4"}});
  const auto review = review_pod(review_of(pod).dump(), {});
  ASSERT_TRUE(review && review->request);
  EXPECT_EQ(review->request->dialect, "ack");
  const NamespaceRules rules{.name = "a", .quota_keys = {"requests.aliyun.com/gpu-mem"}};
  EXPECT_TRUE(in_namespace(*review, {.name = "a"}, true).is_allowed);
  for (const PodReview& refused :
       {in_namespace(*review, rules, true), in_namespace(*review, {.name = "a"}, false),
        without_namespace(*review, "no answer")}) {
    EXPECT_FALSE(refused.is_allowed);
    const Json response = Json::parse(refused.answer)["response"];
    EXPECT_EQ(response["allowed"], false);
    EXPECT_EQ(response["uid"], review->uid);
    EXPECT_NE(response["status"]["message"], "");
  }
}

TEST(PodReview, a_pod_of_an_account_with_a_used_up_budget_is_rejected_until_the_month_ends) {
  constexpr int64_t second = 1'000'000'000, november = 1'793'491'200 * second,
                    december = 1'796'083'200 * second;
  const kubernetes::UsedBudgets used{.until = "2026-12-01T00:00:00Z",
                                     .accounts = {{"research", "research-2026"}, {"a", "b"}}};
  const auto response = [&](const char* account, const NamespaceRules& rules, int64_t now_ns) {
    Json pod = pod_with({{"carve.dev/memory", "4Gi"}});
    if (*account != '\0') pod["metadata"]["labels"]["carve.dev/account"] = account;
    const auto review = review_pod(review_of(pod).dump(), {});
    EXPECT_TRUE(review && review->request);
    const PodReview end = within_budget(in_namespace(*review, rules, true), used, now_ns);
    const Json out = Json::parse(end.answer)["response"];
    EXPECT_EQ(out["allowed"], end.is_allowed);
    return out;
  };
  const Json refused = response("research", {.name = "a"}, november);
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_EQ(refused["status"]["code"], 403);
  EXPECT_EQ(refused["status"]["message"],
            "budget research-2026 of account research is used up: new pods with slices are rejected until "
            "2026-12-01T00:00:00Z, or until the budget is raised");
  EXPECT_EQ(response("", {.name = "a", .account = "research"}, november)["allowed"], false)
      << "the namespace's account";
  EXPECT_EQ(response("", {.name = "a"}, november)["allowed"], false) << "the namespace is the account";
  EXPECT_EQ(response("other", {.name = "a"}, november)["allowed"], true);
  EXPECT_EQ(response("research", {.name = "a"}, december)["allowed"], true) << "the next month";
}

TEST(PodReview, a_pod_gets_the_account_of_its_namespace) {
  const NamespaceRules rules{.name = "a", .account = "research"};
  const auto reviewed = [&](const Json& pod, const NamespaceRules& in) {
    const auto review = review_pod(review_of(pod).dump(), {});
    EXPECT_TRUE(review && review->request);
    return Json::parse(in_namespace(*review, in, true).answer)["response"];
  };
  Json pod = pod_with({{"carve.dev/memory", "4Gi"}});
  Json out = patched(pod, reviewed(pod, rules));
  EXPECT_EQ(out["metadata"]["labels"]["carve.dev/account"], "research");
  EXPECT_EQ(out["metadata"]["labels"]["carve.dev/sliced"], "true") << "the rest of the patch is kept";
  EXPECT_EQ(out["spec"]["schedulerName"], "carve-scheduler");
  EXPECT_FALSE(
      patched(pod, reviewed(pod, {.name = "a"}))["metadata"]["labels"].contains("carve.dev/account"));

  pod["metadata"]["labels"]["carve.dev/account"] = "research";
  EXPECT_EQ(reviewed(pod, rules)["allowed"], true);
  pod["metadata"]["labels"]["carve.dev/account"] = "production";
  EXPECT_EQ(reviewed(pod, {.name = "a"})["allowed"], true);
  const Json refused = reviewed(pod, rules);
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_EQ(refused["status"]["code"], 422);
  EXPECT_THAT(refused["status"]["message"].get<std::string>(), HasSubstr("account 'research' pays"));
}

TEST(PodReview, warnings_are_returned_to_the_user) {
  Json pod = pod_with({{"nvidia.com/gpumem", 3000}});
  pod["metadata"]["annotations"]["hami.io/node-scheduler-policy"] = "spread";
  EXPECT_EQ(response_to(pod)["warnings"][0], "hami.io/node-scheduler-policy has no effect here");
}

TEST(PodReview, every_example_is_patched_into_its_admitted_form_once) {
  dialects::PodSettings settings;
  settings.unit = MemoryUnit::gib;
  settings.models = {"NVIDIA A10", "NVIDIA H100"};
  size_t patches = 0;
  for (const auto& [limits, metadata, result] : dialects::testing::accepted()) {
    if (!metadata.empty()) continue;
    Json given;
    std::string text = limits;
    while (!text.empty()) {
      const size_t colon = text.find(": "), end = std::min(text.find(", "), text.size());
      std::string value = text.substr(colon + 2, end - colon - 2);
      std::erase(value, '\'');
      given[text.substr(0, colon)] = value;
      text.erase(0, std::min(end + 2, text.size()));
    }
    const Json pod = pod_with(given);
    const Json response = response_to(pod, settings);
    if (!response.contains("patch")) continue;
    ++patches;
    EXPECT_FALSE(response_to(patched(pod, response), settings).contains("patch")) << limits;
  }
  EXPECT_GT(patches, 5u);
}

TEST(PodReview, a_deeply_nested_pod_is_parsed) {
  Json pod = pod_with({{"carve.dev/memory", "4Gi"}});
  Json* at = &pod["metadata"]["managedFields"];
  for (int i = 0; i < 30; ++i) at = &(*at)["f:x"];
  *at = Json::object();
  EXPECT_EQ(response_to(pod)["allowed"], true);
  for (int i = 0; i < 60; ++i) at = &(*at)["f:x"];
  EXPECT_FALSE(review_pod(review_of(pod).dump(), {}));
}

TEST(PodReview, an_update_removes_the_repeated_limits) {
  Json review = review_of(pod_with({{"cpu", "1"}}));
  review["request"]["operation"] = "UPDATE";
  review["request"]["oldObject"] = pod_with({{"cpu", "1"}});
  const auto plain = review_pod(review.dump(), {});
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_TRUE(plain->is_allowed);
  EXPECT_FALSE(plain->request) << "no namespace is read";
}

TEST(PodReview, rejects_reviews_that_do_not_create_a_pod) {
  Json update = review_of(pod_with({}));
  update["request"]["operation"] = "UPDATE";
  Json unnamed = review_of(pod_with({}));
  unnamed["request"].erase("uid");
  Json other = review_of(pod_with({}));
  other["apiVersion"] = "admission.k8s.io/v2";
  Json text = review_of("pod");
  for (const std::string& body : {std::string("{"), std::string("[]"), std::string("null"), std::string(),
                                  update.dump(), unnamed.dump(), other.dump(), text.dump()})
    EXPECT_FALSE(review_pod(body, {})) << body;
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
