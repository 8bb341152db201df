#include "kubernetes/cli/doctor.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::cli {
namespace {

using ::testing::HasSubstr;

DoctorAnswers healthy_answers() {
  const std::string webhook = R"({"webhooks":[{"clientConfig":{"caBundle":"QQ=="}}]})";
  return {
      .version = std::string(R"({"major":"1","minor":"36","gitVersion":"v1.36.2"})"),
      .deployment = std::string(R"({"spec":{"replicas":2},"status":{"readyReplicas":2}})"),
      .daemon_set = std::string(R"({"status":{"desiredNumberScheduled":3,"numberReady":3}})"),
      .mutating = webhook,
      .validating = webhook,
      .policies = std::string(
          R"({"items":[{"metadata":{"name":"carve-pods"}},{"metadata":{"name":"carve-resizes"}},{"metadata":{"name":"carve-bindings"}},)"
          R"({"metadata":{"name":"carve-nodes"}},{"metadata":{"name":"carve-system-labels"}},)"
          R"({"metadata":{"name":"carve-resource-slices"}},{"metadata":{"name":"carve-claims"}},{"metadata":{"name":"carve-requests"}},{"metadata":{"name":"carve-labels"}}]})"),
      .settings = std::string("{}")};
}

DoctorRow row(const DoctorAnswers& answers, const std::string& component) {
  for (const DoctorRow& each : examine(answers, nullptr).components)
    if (each.component == component) return each;
  return {};
}

TEST(Doctor, reports_a_complete_installation_as_deployed) {
  const DoctorAnswers answers = healthy_answers();
  for (const char* component :
       {"API server", "settings", "coordinator", "webhook of pods", "policies", "agents"})
    EXPECT_EQ(row(answers, component).state, "Deployed") << component << row(answers, component).reason;
  EXPECT_EQ(row(answers, "coordinator").reason, "2 of 2 ready");
  EXPECT_TRUE(examine(answers, nullptr).has_failed()) << "nodes cannot be listed";
}

TEST(Doctor, reports_both_versions_if_the_server_is_too_old) {
  DoctorAnswers answers = healthy_answers();
  answers.version = std::string(R"({"major":"1","minor":"28+","gitVersion":"v1.28.3"})");
  EXPECT_EQ(row(answers, "API server").state, "Failed");
  EXPECT_EQ(row(answers, "API server").reason, "Kubernetes 1.28.3 is too old; Carve requires 1.30 or newer");
}

TEST(Doctor, reports_a_setting_that_the_webhook_does_not_follow) {
  DoctorAnswers answers = healthy_answers();
  const auto webhook_with = [](const char* keys) {
    return fmt::format(
        R"({{"webhooks":[{{"clientConfig":{{"caBundle":"b"}},"matchConditions":[{{"expression":"k in [{}]"}}]}}]}})",
        keys);
  };
  answers.mutating = webhook_with("'nvidia.com/gpumem'");
  EXPECT_EQ(row(answers, "webhook of pods").state, "Deployed");
  answers.settings = std::string(R"({"data":{"plainNvidiaGpu":"whole"}})");
  EXPECT_EQ(row(answers, "webhook of pods").state, "Deploying");
  EXPECT_THAT(row(answers, "webhook of pods").reason, HasSubstr("overlay plain-nvidia-gpu"));
  answers.mutating = webhook_with("'nvidia.com/gpu', 'nvidia.com/gpumem'");
  EXPECT_EQ(row(answers, "webhook of pods").state, "Deployed");
}

TEST(Doctor, reports_feature_gates_that_are_off_if_a_node_uses_dra) {
  DoctorAnswers answers = healthy_answers();
  EXPECT_EQ(row(answers, "feature gates").state, "") << "no node uses DRA";
  std::string metrics = "# TYPE kubernetes_feature_enabled gauge\n";
  for (const char* gate :
       {"DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource", "DRAPartitionableDevices"})
    metrics += fmt::format("kubernetes_feature_enabled{{name=\"{}\",stage=\"BETA\"}} 1\n", gate);
  answers.metrics = metrics + "kubernetes_feature_enabled{name=\"DynamicResourceAllocation\",stage=\"\"} 1\n";
  EXPECT_EQ(row(answers, "feature gates").state, "Deployed") << row(answers, "feature gates").reason;
  answers.metrics = metrics + "kubernetes_feature_enabled{name=\"DynamicResourceAllocation\",stage=\"\"} 0\n";
  EXPECT_EQ(row(answers, "feature gates").state, "Failed");
  EXPECT_THAT(row(answers, "feature gates").reason, HasSubstr("DynamicResourceAllocation: off or unknown"));
  answers.metrics = std::string();
  EXPECT_THAT(row(answers, "feature gates").reason, HasSubstr("DRADeviceTaints, DRAPartitionableDevices"));
  answers.metrics = tl::unexpected(std::string("(Forbidden)"));
  EXPECT_EQ(row(answers, "feature gates").state, "Unknown");
}

TEST(Doctor, reports_one_row_for_one_cause) {
  const Answer away = tl::unexpected(std::string("The connection to the server was refused"));
  DoctorAnswers answers{away, away, away, away, away, away, away};
  EXPECT_EQ(examine(answers, nullptr).components.size(), 1u);
  answers = healthy_answers();
  answers.deployment = answers.daemon_set = answers.mutating = answers.validating =
      tl::unexpected(std::string("Error from server (NotFound): not found"));
  const DoctorReport report = examine(answers, nullptr);
  ASSERT_EQ(report.components.size(), 2u);
  EXPECT_THAT(report.components[1].reason, HasSubstr("not installed; run kubectl apply -k"));
  EXPECT_TRUE(report.has_failed());
}

TEST(Doctor, reports_parts_that_the_caller_may_not_read_as_unknown) {
  const Answer forbidden =
      tl::unexpected(std::string("Error from server (Forbidden): deployments.apps is forbidden"));
  DoctorAnswers answers = healthy_answers();
  answers.deployment = answers.daemon_set = answers.mutating = answers.validating = answers.policies =
      answers.settings = forbidden;
  ClusterView view;
  view.nodes_problem = forbidden.error();
  const DoctorReport report = examine(answers, &view);
  ASSERT_EQ(report.components.size(), 8u);
  for (size_t i = 1; i < report.components.size(); ++i)
    EXPECT_EQ(report.components[i].state, "Unknown") << report.components[i].component;
  EXPECT_TRUE(report.has_failed()) << "no part is known to be deployed";
}

TEST(Doctor, reports_a_reason_for_missing_and_unready_parts) {
  DoctorAnswers answers = healthy_answers();
  answers.deployment = std::string(R"({"spec":{"replicas":2},"status":{}})");
  answers.mutating = std::string(R"({"webhooks":[{"clientConfig":{}}]})");
  answers.validating = tl::unexpected(std::string("not found"));
  answers.policies = std::string(R"({"items":[{"metadata":{"name":"carve-pods"}}]})");
  answers.daemon_set = std::string(R"({"status":{"desiredNumberScheduled":0}})");
  EXPECT_EQ(row(answers, "coordinator").state, "Deploying");
  EXPECT_THAT(row(answers, "webhook of pods").reason, HasSubstr("caBundle is empty"));
  EXPECT_EQ(row(answers, "webhook of settings").reason, "not found");
  EXPECT_THAT(row(answers, "policies").reason, HasSubstr("carve-resizes, carve-bindings, carve-nodes"));
  EXPECT_THAT(row(answers, "agents").reason, HasSubstr("kubectl label node NODE"));
  for (const char* text : {"", "[]", "{", "5"}) {
    answers.version = answers.deployment = answers.mutating = std::string(text);
    EXPECT_FALSE(examine(answers, nullptr).components.empty()) << text;
  }
}

}  // namespace
}  // namespace carve::kubernetes::cli
