#include "render/job_manifests.h"

#include <gmock/gmock.h>

#include "objects/rules/cluster_check.h"
#include "objects/rules/job_check.h"

namespace carve::render {
namespace {

using testing::HasSubstr;
using testing::Not;

Manifests manifests(const objects::JobSpec& spec) {
  const auto pods = engines::engine_pods(objects::engine_request(spec, {.name = "q"}));
  EXPECT_TRUE(pods) << pods.error().front().message;
  return job_manifests({.name = "j"}, spec, *pods);
}

std::string rendered(const objects::JobSpec& spec) {
  const Manifests out = manifests(spec);
  EXPECT_FALSE(out.warnings.empty());
  return out.text;
}

engines::Parameters mgpu(engines::Parameters more) {
  more["emr.serverless.mgpu.core"] = "30";
  more["emr.serverless.mgpu.memory"] = "1000";
  return more;
}

TEST(JobManifests, a_custom_job_becomes_an_indexed_job_with_carves_resources) {
  const std::string text = rendered({.queue = "q",
                                     .parameters = mgpu({{"serverless.custom.job.gpu.enabled", "true"},
                                                         {"serverless.custom.job.task.gpus", "1"}}),
                                     .run = {.command = {"train", "it's"}},
                                     .tasks = 3,
                                     .retries = 2});
  for (const char* line :
       {"kind: \"Job\"", "completions: 3", "backoffLimitPerIndex: 2", "carve.dev/compute: 30",
        "carve.dev/memory: \"1000Mi\"", "carve.dev/policy: \"fixed-share\"", "job-completion-index"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(JobManifests, a_job_with_an_image_is_rendered_with_it) {
  const Manifests named = manifests({.queue = "q", .run = {.command = {"train"}, .image = "r/train:1"}});
  EXPECT_THAT(named.text, HasSubstr("image: \"r/train:1\""));
  for (const std::string& warning : named.warnings) EXPECT_THAT(warning, Not(HasSubstr("image")));
  const Manifests nameless = manifests({.queue = "q", .run = {.command = {"train"}}});
  EXPECT_THAT(nameless.text, HasSubstr("image: \"IMAGE\""));
  EXPECT_THAT(nameless.warnings, testing::Contains(HasSubstr("the image is unknown")));
}

TEST(JobManifests, a_ray_job_becomes_a_kuberay_job_whose_head_has_no_gpu) {
  const std::string text = rendered({.queue = "q",
                                     .engine = JobEngine::ray,
                                     .parameters = mgpu({{"serverless.ray.worker.gpu.amount", "1"},
                                                         {"carve.ray.worker.cpus", "4"},
                                                         {"carve.ray.worker.memory.bytes", "3000000000"},
                                                         {"carve.ray.worker.store.bytes", "100000000"}}),
                                     .run = {.command = {"python3", "it's"}},
                                     .workers = 2,
                                     .retries = 2,
                                     .deadline_seconds = 60});
  for (const char* line :
       {"kind: \"RayJob\"", "replicas: 2", R"(entrypoint: "python3 'it'\\''s'")", "backoffLimit: 2",
        "activeDeadlineSeconds: 60", "num-cpus: \"4\"", "memory: \"3000000000\"",
        "object-store-memory: \"100000000\"", "carve.dev/memory: \"1000Mi\""})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_EQ(text.find("carve.dev/memory"), text.rfind("carve.dev/memory")) << "only the workers have slices";
}

TEST(JobManifests, a_spark_job_becomes_a_pod_template_and_a_command) {
  const std::string text = rendered(
      {.queue = "q",
       .engine = JobEngine::spark,
       .parameters = mgpu({{"spark.executor.resource.gpu.amount", "1"}, {"spark.executor.instances", "2"}}),
       .run = {.command = {"app.py"}}});
  EXPECT_THAT(text, HasSubstr("spark.kubernetes.executor.podTemplateFile=j.yaml"));
  EXPECT_THAT(text, HasSubstr("spark.executor.instances=2"));
  EXPECT_THAT(text, Not(HasSubstr("driver.podTemplateFile")));
  EXPECT_THAT(text, HasSubstr("kind: \"Pod\""));
}

TEST(JobManifests, a_spark_template_is_merged_into_the_users_template) {
  const auto with = [](engines::Parameters more) {
    more["spark.executor.resource.gpu.amount"] = "1";
    more["spark.kubernetes.executor.podTemplateFile"] = "my pod.yaml";
    return rendered(
        {.queue = "q", .engine = JobEngine::spark, .parameters = mgpu(more), .run = {.command = {"app.py"}}});
  };
  const std::string text = with({{"spark.kubernetes.driver.podTemplateFile", "driver.yaml"}});
  EXPECT_THAT(text, HasSubstr("podTemplateFile=j-executor.yaml"));
  EXPECT_THAT(
      text,
      HasSubstr("kubectl patch --local -f 'my pod.yaml' --patch-file j.yaml -o yaml > j-executor.yaml"));
  EXPECT_THAT(text, Not(HasSubstr("podTemplateFile=my"))) << "Spark uses the last one, which has no slice";
  EXPECT_THAT(text, HasSubstr("spark.kubernetes.driver.podTemplateFile=driver.yaml"))
      << "the driver has no slice";
  EXPECT_THAT(text, HasSubstr("name: \"spark\""));
  EXPECT_THAT(with({{"spark.kubernetes.executor.podTemplateContainerName", "main"}}),
              HasSubstr("name: \"main\""));
}

TEST(JobManifests, a_spark_job_warns_about_limits_that_spark_does_not_have) {
  const Manifests out = manifests({.queue = "q",
                                   .engine = JobEngine::spark,
                                   .parameters = mgpu({{"spark.executor.resource.gpu.amount", "1"}}),
                                   .run = {.command = {"app.py"}},
                                   .retries = 2,
                                   .deadline_seconds = 60});
  for (const char* warning : {"spec.deadlineSeconds 60 is not rendered; spark-submit has no such limit",
                              "spec.retries 2 is not rendered; spark-submit has no such limit"})
    EXPECT_THAT(out.warnings, testing::Contains(warning));
}

// Without GPU amounts, Spark counts only cores.
TEST(JobManifests, a_spark_job_keeps_the_number_of_concurrent_tasks) {
  const auto command = [](const char* cores, const char* amount) {
    return rendered({.queue = "q",
                     .engine = JobEngine::spark,
                     .parameters = mgpu({{"spark.executor.resource.gpu.amount", "1"},
                                         {"spark.executor.cores", cores},
                                         {"spark.task.resource.gpu.amount", amount}}),
                     .run = {.command = {"app.py"}}});
  };
  EXPECT_THAT(command("8", "0.5"), HasSubstr("--conf spark.executor.cores=2 --conf "
                                             "spark.kubernetes.executor.request.cores=8"));
  EXPECT_THAT(command("8", "0.5"), Not(HasSubstr("spark.executor.cores=8")));
  EXPECT_THAT(command("8", "0.1"), HasSubstr("spark.executor.cores=8"));
  EXPECT_THAT(command("8", "0.1"), Not(HasSubstr("request.cores")));
}

TEST(JobManifests, a_ray_cluster_has_one_group_per_worker_size) {
  const objects::RayClusterSpec spec{.queue = "q",
                                     .workers = {{.replicas = 2, .mgpu_core = 30, .mgpu_memory = 1000},
                                                 {.replicas = 1, .mgpu_core = 50, .mgpu_memory = 8192}},
                                     .engine_home = "/ray/bin",
                                     .parameters = {{"carve.ray.worker.cpus", "4"}},
                                     .env = {{"A", "b"}}};
  const auto pods = objects::cluster_pods(spec, {.name = "q"}, {});
  ASSERT_TRUE(pods) << pods.error().front().message;
  const std::string text = cluster_manifests({.name = "c"}, spec, *pods).text;
  for (const char* line :
       {"apiVersion: \"ray.io/v1\"", "kind: \"RayCluster\"", "groupName: \"workers-0\"",
        "groupName: \"workers-1\"", "replicas: 2", "replicas: 1", "carve.dev/memory: \"1000Mi\"",
        "carve.dev/compute: 50", "num-cpus: \"4\"", "num-gpus: \"0\"", "name: \"A\""})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("/ray/bin"))) << "the image has its own Ray";
}

}  // namespace
}  // namespace carve::render
