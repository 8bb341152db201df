#include "kubernetes/coordinator/webhook/settings_review.h"

#include <gmock/gmock.h>

#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {
namespace {

using api::Json;
using ::testing::HasSubstr;

Json response_to(const Json& object, const Json& old, const PodsInUnits& pods = {},
                 SchedulerBeside scheduler = SchedulerBeside::own) {
  Json request{{"uid", "u"}, {"operation", "UPDATE"}, {"object", object}, {"oldObject", old}};
  const Json review{{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
  const auto answer = review_settings(review.dump(), pods, scheduler);
  if (!answer) return answer.error();
  return Json::parse(*answer)["response"];
}

Json settings(const Json& data) { return {{"kind", "ConfigMap"}, {"data", data}}; }

TEST(SettingsReview, rejects_invalid_values_with_every_message) {
  const Json response = response_to(settings({{"gpuMemoryUnit", "64MiB"}, {"sharing", "no"}}), settings({}));
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"]["code"], 422);
  EXPECT_EQ(response["status"]["message"],
            "gpuMemoryUnit 64MiB: must be 1GiB or 128MiB; sharing no: must be disabled or enabled");
}

TEST(SettingsReview, the_unit_changes_only_if_no_pod_uses_it) {
  const Json to = settings({{"gpuMemoryUnit", "128MiB"}}), from = settings({{"gpuMemoryUnit", "1GiB"}});
  const Json refused = response_to(to, from, {{1u << 30, {"a/web-0"}}});
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_THAT(refused["status"]["message"].get<std::string>(), HasSubstr("a/web-0"));
  EXPECT_EQ(response_to(to, from)["allowed"], true);
  EXPECT_EQ(response_to(to, settings({{"gpuMemoryUnit", "no"}}), {{1u << 30, {"a/web-0"}}})["allowed"], true);
}

TEST(SettingsReview, warns_about_settings_that_need_other_manifests) {
  const Json whole = settings({{"plainNvidiaGpu", "whole"}});
  const Json response = response_to(whole, settings({}));
  EXPECT_EQ(response["allowed"], true);
  EXPECT_FALSE(response.contains("patch"));
  EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr("overlay plain-nvidia-gpu"));
  EXPECT_FALSE(response_to(whole, whole).contains("warnings"));
}

TEST(SettingsReview, rejects_a_scheduler_that_does_not_call_this_coordinator) {
  const Json both = settings({{"schedulers", "carve-scheduler, default-scheduler"}});
  const Json refused = response_to(both, settings({}));
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_THAT(refused["status"]["message"].get<std::string>(),
              HasSubstr("--lease kube-system/kube-scheduler"));
  EXPECT_EQ(response_to(both, settings({}), {}, SchedulerBeside::of_cluster)["allowed"], true);
  const Json other = settings({{"schedulers", "carve-scheduler, batch"}});
  EXPECT_THAT(response_to(other, settings({}))["warnings"][0].get<std::string>(),
              HasSubstr("schedulers: pods of batch wait unless"));
  EXPECT_FALSE(response_to(other, other).contains("warnings"));
}

TEST(SettingsReview, allows_a_deletion_and_rejects_other_documents) {
  EXPECT_EQ(response_to(nullptr, settings({}))["allowed"], true);
  for (const char* text :
       {"", "{}", "[]", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})"})
    EXPECT_FALSE(review_settings(text, {}, SchedulerBeside::own)) << text;
}

TEST(SettingsReview, parses_a_config_map) {
  EXPECT_EQ(read_settings_object(R"({"data":{"gpuMemoryUnit":"128MiB"}})")->unit, MemoryUnit::mib_128);
  EXPECT_TRUE(read_settings_object(R"({"metadata":{}})"));
  EXPECT_FALSE(read_settings_object("[]"));
  EXPECT_FALSE(read_settings_object("{"));
  EXPECT_FALSE(read_settings_object(R"({"data":{"sharing":5}})"));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
