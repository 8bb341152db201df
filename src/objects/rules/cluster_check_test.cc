#include "objects/rules/cluster_check.h"

#include <gmock/gmock.h>

#include "engines/engine_programs.h"
#include "wire/api/json.h"

namespace carve::objects {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

objects::RayClusterSpec two_sizes() {
  return {.queue = "q",
          .workers = {{.replicas = 2, .mgpu_core = 30, .mgpu_memory = 4096},
                      {.replicas = 1, .mgpu_core = 50, .mgpu_memory = 8192}},
          .engine_home = "/ray/bin"};
}

Result<engines::EnginePods, api::FieldErrors> pods_of_two_sizes(const objects::RayClusterSpec& spec,
                                                                QueueGpu gpu = QueueGpu::mgpu,
                                                                bool strict = false) {
  return cluster_pods(spec, {.name = "q", .gpu = gpu, .strict = strict},
                      {.context_bytes = 256 << 20, .largest_device_bytes = uint64_t{22731} << 20});
}

TEST(RayCluster, has_a_head_without_a_slice_and_workers_of_each_size) {
  const auto pods = pods_of_two_sizes(two_sizes());
  ASSERT_TRUE(pods) << pods.error().front().message;
  EXPECT_THAT(pods->groups, ElementsAre(engines::PodGroup{PodRole::head, 1, false},
                                        engines::PodGroup{PodRole::worker, 3, true}));
  EXPECT_EQ(workload::slice_count(pods->need), 3u);
  EXPECT_EQ(workload::amounts_of_slice(pods->need, 0).memory_bytes, (4096_MiB).count);
  EXPECT_EQ(workload::amounts_of_slice(pods->need, 2).memory_bytes, (4096_MiB).count);
  EXPECT_EQ(workload::amounts_of_slice(pods->need, 1).memory_bytes, (8192_MiB).count);
  EXPECT_EQ(workload::amounts_of_slice(pods->need, 1).share_bp, 5000u);
}

TEST(RayCluster, requests_whole_devices_in_a_gpu_queue) {
  objects::RayClusterSpec spec = two_sizes();
  spec.workers = {{.replicas = 2}};
  const auto pods = pods_of_two_sizes(spec, QueueGpu::gpu);
  ASSERT_TRUE(pods) << pods.error().front().message;
  EXPECT_EQ(workload::first_amount(pods->need).compute_bp, 10'000u);
  EXPECT_EQ(workload::slice_count(pods->need), 2u);
}

TEST(RayCluster, errors_contain_the_field_of_the_document) {
  const auto message = [](objects::RayWorkers workers, QueueGpu gpu = QueueGpu::mgpu, bool strict = false) {
    objects::RayClusterSpec spec = two_sizes();
    spec.workers[1] = workers;
    const auto pods = pods_of_two_sizes(spec, gpu, strict);
    return pods ? std::string("accepted") : pods.error().back().message;
  };
  const struct {
    std::string message, wanted;
  } rows[] = {
      {message({.mgpu_core = 4, .mgpu_memory = 4096}),
       "spec.workers[1].mgpuCore: '4' is not a whole number from 5 to 99, in percent"},
      {message({.mgpu_core = 30}),
       "spec.workers[1].mgpuCore is set but spec.workers[1].mgpuMemory is not: set both"},
      {message({}), "queue q divides GPUs: set spec.workers[1].mgpuCore and spec.workers[1].mgpuMemory"},
      {message({.mgpu_core = 7, .mgpu_memory = 4096}, QueueGpu::mgpu, true),
       "spec.workers[1].mgpuCore: '7' is neither a multiple of 5 nor 99, as the strict queue q requires"},
      {message({.mgpu_core = 30, .mgpu_memory = 200}),
       "spec.workers[1].mgpuMemory: 200 MiB is less than the 256 MiB that one context takes"},
      {message({.mgpu_core = 30, .mgpu_memory = 30000}),
       "spec.workers[1].mgpuMemory: 30000 MiB is more than the 22731 MiB of the largest device"},
      {message({.mgpu_core = 30, .mgpu_memory = 4096}, QueueGpu::gpu),
       "queue q provides whole GPUs: leave out spec.workers[1].mgpuCore and spec.workers[1].mgpuMemory, or "
       "choose an mGPU queue"},
  };
  for (const auto& row : rows) EXPECT_EQ(row.message, row.wanted);
}

TEST(RayCluster, warnings_are_those_of_each_worker_size) {
  objects::RayClusterSpec spec = two_sizes();
  spec.parameters["carve.ray.worker.cpus"] = "20";
  const auto pods = pods_of_two_sizes(spec);
  ASSERT_TRUE(pods) << pods.error().front().message;
  EXPECT_EQ(pods->tasks_at_once, 20u);
  EXPECT_THAT(pods->warnings, ElementsAre(HasSubstr("16 fit; set spec.workers[0].mgpuMemory=5120 or more, or "
                                                    "carve.ray.worker.cpus=16")));
}

TEST(RayCluster, is_parsed_strictly_and_reports_all_errors) {
  const auto read = read_ray_cluster(
      R"({"apiVersion":"carve.dev/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"queue":"q",)"
      R"("workers":[{"replicas":0}],"engineHome":"ray","parameters":{"x":"1"}}})");
  ASSERT_FALSE(read);
  std::vector<std::string> messages;
  for (const api::FieldError& error : read.error()) messages.push_back(error.message);
  EXPECT_THAT(messages, Contains(HasSubstr("spec.workers[0].replicas: must be at least 1")));
  EXPECT_THAT(messages, Contains(HasSubstr("spec.engineHome: 'ray' is not an absolute path")));
  EXPECT_THAT(messages, Contains(HasSubstr("'x' has no effect on a cluster")));
  const std::pair<const char*, const char*> homes[] = {
      {"/opt/ray:/tmp", "spec.engineHome: '/opt/ray:/tmp' has a colon"},
      {"/opt/\\nray", "spec.engineHome: the path has a control"}};
  for (const auto& [home, wanted] : homes) {
    const auto wrong = read_ray_cluster(fmt::format(
        R"({{"metadata":{{"name":"a"}},"spec":{{"queue":"q","workers":[{{}}],"engineHome":"{}"}}}})", home));
    ASSERT_FALSE(wrong) << home;
    EXPECT_THAT(wrong.error().front().message, HasSubstr(wanted));
  }
  const auto misspelt =
      read_ray_cluster(R"({"metadata":{"name":"a"},"spec":{"queue":"q","workers":[{}],"engineHome":"/r",)"
                       R"("parameters":{"carve.ray.worker.cpu":"2"}}})");
  ASSERT_FALSE(misspelt);
  EXPECT_THAT(misspelt.error().front().message, HasSubstr("carve.ray.worker.cpu: unknown key; use"));
  EXPECT_FALSE(
      read_ray_cluster(R"({"metadata":{"name":"a"},"spec":{"queue":"q","workers":[],"engineHome":"/r"}})"));
  EXPECT_TRUE(read_ray_cluster(
      R"({"metadata":{"name":"a"},"spec":{"queue":"q","workers":[{"mgpuCore":30,"mgpuMemory":4096}],"engineHome":"/r"}})"));
}

TEST(RayCluster, shows_its_dashboard_at_a_port_outside_of_its_network) {
  const auto pods = pods_of_two_sizes(two_sizes());
  const engines::PodProgram head =
      engines::pod_program(job_of_cluster(two_sizes()), "c", *pods, {PodRole::head, 0},
                           {.scripts = "/s", .job_folder = "/tmp/c", .port = 30005, .secret = "S"});
  EXPECT_THAT(std::vector<std::string>(head.command.begin(), head.command.begin() + 9),
              ElementsAre("/s/pod-folder", "/tmp/c-h0", "/ray/bin/python3", "/s/forward-port", "bind",
                          "30005", "/s/cluster-network", "begin", "/tmp/c-h0"));
  EXPECT_THAT(head.env, Contains(testing::Pair("CARVE_FORWARD_PYTHON", "/ray/bin/python3")));
}

}  // namespace
}  // namespace carve::objects
