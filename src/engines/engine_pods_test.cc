#include "engines/engine_pods.h"

#include <gmock/gmock.h>

namespace carve::engines {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t context = 256 << 20, usable = uint64_t{22731} << 20;

Parameters spark(const char* task = "0.1", const char* cores = "10") {
  return {{"spark.driver.resource.gpu.amount", "1"}, {"spark.executor.resource.gpu.amount", "1"},
          {"spark.executor.instances", "2"},         {"spark.executor.cores", cores},
          {"spark.task.resource.gpu.amount", task},  {"emr.serverless.mgpu.core", "30"},
          {"emr.serverless.mgpu.memory", "4096"}};
}
Parameters ray() {
  return {{"serverless.ray.worker.gpu.vendor", "nvidia.com"},
          {"serverless.ray.worker.gpu.amount", "1"},
          {"emr.serverless.mgpu.core", "30"},
          {"emr.serverless.mgpu.memory", "4096"}};
}
Parameters custom(const char* core = "30", const char* memory = "1000") {
  return {{"serverless.custom.job.gpu.enabled", "true"},
          {"serverless.custom.job.task.gpus", "1"},
          {"emr.serverless.mgpu.core", core},
          {"emr.serverless.mgpu.memory", memory}};
}

EngineRequest request(JobEngine engine, Parameters parameters, QueueGpu gpu = QueueGpu::mgpu,
                      bool strict = false) {
  return {.engine = engine,
          .parameters = std::move(parameters),
          .queue = {.name = "q", .gpu = gpu, .strict = strict},
          .context_bytes = context,
          .largest_device_bytes = usable};
}

std::vector<std::string> refusals(const EngineRequest& requested) {
  std::vector<std::string> out;
  if (const auto pods = engine_pods(requested); !pods)
    for (const api::FieldError& error : pods.error()) out.push_back(error.message);
  return out;
}

Parameters without(Parameters parameters, const char* key) {
  parameters.erase(key);
  return parameters;
}
Parameters with(Parameters parameters, const char* key, const char* value) {
  parameters[key] = value;
  return parameters;
}

TEST(EnginePods, spark_has_a_master_executors_and_a_driver_with_equal_slices) {
  const auto pods = engine_pods(request(JobEngine::spark, spark()));
  ASSERT_TRUE(pods) << pods.error().front().message;
  EXPECT_THAT(pods->groups,
              ElementsAre(PodGroup{PodRole::head, 1, false}, PodGroup{PodRole::executor, 2, true},
                          PodGroup{PodRole::driver, 1, true}));
  EXPECT_EQ(workload::slice_count(pods->need), 3u);
  EXPECT_EQ(workload::first_amount(pods->need).memory, 4096_MiB);
  EXPECT_EQ(workload::first_amount(pods->need).compute_bp, 3000u);
  EXPECT_EQ(pods->tasks_at_once, 10u);
  EXPECT_THAT(pods->warnings, IsEmpty());
  const auto whole = engine_pods(request(
      JobEngine::spark, without(without(spark(), "emr.serverless.mgpu.core"), "emr.serverless.mgpu.memory"),
      QueueGpu::gpu));
  ASSERT_TRUE(whole) << whole.error().front().message;
  EXPECT_EQ(workload::first_amount(whole->need).compute_bp, 10'000u);
}

// Spark itself prints "runnable tasks = 9" for 0.11, and 3 for 0.3.
TEST(EnginePods, spark_runs_the_floor_of_the_reciprocal_task_amount) {
  const struct {
    const char* amount;
    uint32_t tasks;
  } rows[] = {{"0.1", 10}, {"0.3", 3}, {"0.11", 9}, {"0.05", 20}, {"0.5", 2}, {"1", 1}, {".25", 4}};
  for (const auto& row : rows) {
    const auto pods = engine_pods(
        request(JobEngine::spark, with(spark(row.amount, "32"), "emr.serverless.mgpu.memory", "9000")));
    ASSERT_TRUE(pods) << row.amount;
    EXPECT_EQ(pods->tasks_at_once, row.tasks) << row.amount;
  }
}

TEST(EnginePods, ray_has_workers_and_custom_jobs_have_tasks_with_slices) {
  EngineRequest requested = request(JobEngine::ray, ray());
  requested.workers = 3;
  const auto workers = engine_pods(requested);
  ASSERT_TRUE(workers) << workers.error().front().message;
  EXPECT_THAT(workers->groups,
              ElementsAre(PodGroup{PodRole::head, 1, false}, PodGroup{PodRole::worker, 3, true},
                          PodGroup{PodRole::driver, 1, false}));
  EXPECT_EQ(workload::slice_count(workers->need), 3u);
  requested = request(JobEngine::custom, custom());
  requested.tasks = 4;
  const auto tasks = engine_pods(requested);
  ASSERT_TRUE(tasks) << tasks.error().front().message;
  EXPECT_THAT(tasks->groups, ElementsAre(PodGroup{PodRole::task, 4, true}));
  EXPECT_EQ(workload::first_amount(tasks->need).memory, 1000_MiB);  // Not rounded (S4-6).
  const auto plain = engine_pods(request(JobEngine::custom, {}, QueueGpu::none));
  ASSERT_TRUE(plain);
  EXPECT_EQ(workload::slice_count(plain->need), 0u);
  EXPECT_EQ(workload::gpu_of(plain->need), QueueGpu::none);
}

Parameters whole_devices(Parameters parameters) {
  return without(without(std::move(parameters), "emr.serverless.mgpu.core"), "emr.serverless.mgpu.memory");
}

TEST(EnginePods, are_rejected_with_the_key_and_the_fix) {
  const std::string core = "emr.serverless.mgpu.core";
  const struct {
    EngineRequest requested;
    const char* message;
  } rows[] = {
      {request(JobEngine::custom, custom(), QueueGpu::gpu),
       "queue q provides whole GPUs: leave out emr.serverless.mgpu.core and emr.serverless.mgpu.memory, or "
       "choose an mGPU queue"},
      {request(JobEngine::custom, custom(), QueueGpu::none),
       "queue q provides no GPU: leave out emr.serverless.mgpu.core and emr.serverless.mgpu.memory, or "
       "choose an mGPU queue"},
      {request(JobEngine::custom,
               without(without(custom(), "emr.serverless.mgpu.core"), "emr.serverless.mgpu.memory"),
               QueueGpu::none),
       "queue q provides no GPU: leave out serverless.custom.job.task.gpus, or choose a GPU queue"},
      {request(JobEngine::custom,
               without(without(custom(), "emr.serverless.mgpu.core"), "emr.serverless.mgpu.memory")),
       "queue q divides GPUs: set emr.serverless.mgpu.core and emr.serverless.mgpu.memory"},
      {request(JobEngine::ray, without(ray(), "emr.serverless.mgpu.core")),
       "emr.serverless.mgpu.memory is set but emr.serverless.mgpu.core is not: set both"},
      {request(JobEngine::ray, without(ray(), "emr.serverless.mgpu.memory")),
       "emr.serverless.mgpu.core is set but emr.serverless.mgpu.memory is not: set both"},
      {request(JobEngine::ray, without(ray(), "serverless.ray.worker.gpu.amount")),
       "emr.serverless.mgpu.core and emr.serverless.mgpu.memory need serverless.ray.worker.gpu.amount=1"},
      {request(JobEngine::ray, with(ray(), "serverless.ray.worker.gpu.amount", "2")),
       "serverless.ray.worker.gpu.amount 2: a pod of an mGPU queue has one device; set it to 1"},
      {request(JobEngine::ray, with(ray(), "serverless.ray.worker.gpu.amount", "x")),
       "serverless.ray.worker.gpu.amount: 'x' is not a whole number from 0 to 4294967295"},
      {request(JobEngine::custom, with(custom(), "emr.serverless.mgpu.cores", "3")),
       "emr.serverless.mgpu.cores: unknown key; use emr.serverless.mgpu.core and "
       "emr.serverless.mgpu.memory"},
      {request(JobEngine::custom, without(custom(), "serverless.custom.job.gpu.enabled")),
       "serverless.custom.job.task.gpus needs serverless.custom.job.gpu.enabled=true"},
      {request(JobEngine::custom, custom("4")),
       "emr.serverless.mgpu.core: '4' is not a whole number from 5 to 99, in percent"},
      {request(JobEngine::custom, custom("100")),
       "emr.serverless.mgpu.core: '100' is not a whole number from 5 to 99, in percent"},
      {request(JobEngine::custom, custom("7"), QueueGpu::mgpu, true),
       "emr.serverless.mgpu.core: '7' is neither a multiple of 5 nor 99, as the strict queue q requires"},
      {request(JobEngine::custom, custom("30", "255"), QueueGpu::mgpu, true),
       "emr.serverless.mgpu.memory: 255 MiB is less than 256 MiB, the minimum in the strict queue q"},
      {request(JobEngine::custom, custom("30", "200")),
       "emr.serverless.mgpu.memory: 200 MiB is less than the 256 MiB that one context takes"},
      {request(JobEngine::custom, custom("30", "22732")),
       "emr.serverless.mgpu.memory: 22732 MiB is more than the 22731 MiB of the largest device"},
      {request(JobEngine::custom, custom("30", "1.5")),
       "emr.serverless.mgpu.memory: '1.5' is not a whole number of MiB from 1 to 1073741824"},
      {request(JobEngine::spark, spark("0.6")),
       "spark.task.resource.gpu.amount: '0.6' must be at most 0.5 or a whole number"},
      {request(JobEngine::spark, spark("2")),
       "spark.task.resource.gpu.amount: '2' is more than the 1 of spark.executor.resource.gpu.amount"},
      {request(JobEngine::spark, spark("a")),
       "spark.task.resource.gpu.amount: 'a' is not a number such as 0.1"},
      {request(JobEngine::spark, without(spark(), "spark.executor.resource.gpu.amount")),
       "spark.task.resource.gpu.amount needs spark.executor.resource.gpu.amount: the tasks share the "
       "executor's device"},
      {request(JobEngine::spark, with(whole_devices(spark()), "spark.driver.resource.gpu.amount", "2"),
               QueueGpu::gpu),
       "spark.driver.resource.gpu.amount 2: pods of another role have 1, but all slices of a job must be "
       "equal"},
      {request(JobEngine::ray, with(whole_devices(ray()), "serverless.ray.worker.gpu.amount", "17"),
               QueueGpu::gpu),
       "serverless.ray.worker.gpu.amount 17: a pod has at most 16 devices"},
      {request(JobEngine::custom, with(custom(), "serverless.custom.job.gpu.enabled", "yes")),
       "serverless.custom.job.gpu.enabled: 'yes' is neither true nor false"},
      {request(JobEngine::custom, without(whole_devices(custom()), "serverless.custom.job.task.gpus"),
               QueueGpu::gpu),
       "serverless.custom.job.gpu.enabled needs serverless.custom.job.task.gpus=1, the number of devices of "
       "each task"},
      {request(JobEngine::spark, with(spark(), "spark.executor.instances", "0")),
       "spark.executor.instances: '0' is not a whole number from 1 to 1024"},
      {request(JobEngine::spark, with(spark(), "spark.executor.cores", "two")),
       "spark.executor.cores: 'two' is not a whole number from 1 to 4096"},
  };
  for (const auto& row : rows) EXPECT_THAT(refusals(row.requested), ElementsAre(row.message));
}

TEST(EnginePods, are_rejected_for_an_unknown_carve_key_or_an_invalid_number) {
  const std::string known =
      "use carve.ray.worker.cpus, carve.ray.worker.memory.bytes and carve.ray.worker.store.bytes for "
      "Ray";
  const struct {
    EngineRequest requested;
    std::string message;
  } rows[] = {
      {request(JobEngine::ray, with(ray(), "carve.ray.worker.cpu", "4")),
       "carve.ray.worker.cpu: unknown key; " + known},
      {request(JobEngine::custom, with(custom(), "carve.ray.worker.cpus", "4")),
       "carve.ray.worker.cpus: unknown key; " + known},
      {request(JobEngine::ray, with(ray(), "carve.ray.worker.cpus", "0")),
       "carve.ray.worker.cpus: '0' is not a whole number from 1 to 4096"},
      {request(JobEngine::ray, with(ray(), "carve.ray.worker.memory.bytes", "2g")),
       "carve.ray.worker.memory.bytes: '2g' is not a whole number from 1 to 9223372036854775807, in bytes"},
      {request(JobEngine::ray, with(ray(), "carve.ray.worker.store.bytes", "1000")),
       "carve.ray.worker.store.bytes: '1000' is not a whole number from 78643200 to 9223372036854775807, in "
       "bytes"},
  };
  for (const auto& row : rows) EXPECT_THAT(refusals(row.requested), ElementsAre(row.message));
}

// A key without effect must cause a warning.
TEST(EnginePods, warn_about_keys_without_effect) {
  const auto warnings = [](const EngineRequest& requested) {
    const auto pods = engine_pods(requested);
    return pods ? pods->warnings : std::vector<std::string>{pods.error().front().message};
  };
  EXPECT_THAT(warnings(request(JobEngine::ray, with(ray(), "serverless.ray.worker.cpu", "4"))),
              ElementsAre("serverless.ray.worker.cpu has no effect; it is not a parameter of a ray job"));
  EXPECT_THAT(warnings(request(JobEngine::custom, with(custom(), "spark.executor.cores", "4"))),
              ElementsAre("spark.executor.cores has no effect; it is not a parameter of a custom job"));
  EXPECT_THAT(
      warnings(request(JobEngine::spark, with(spark(), "serverless.ray.worker.gpu.amount", "1"))),
      ElementsAre("serverless.ray.worker.gpu.amount has no effect; it is not a parameter of a spark job"));
  EXPECT_THAT(warnings(request(JobEngine::spark, with(spark(), "emr.serverless.gpu.core", "5"))),
              ElementsAre("emr.serverless.gpu.core has no effect; it is not a parameter of a spark job"));
  for (const auto& requested : {request(JobEngine::ray, ray()), request(JobEngine::custom, custom()),
                                request(JobEngine::spark, with(spark(), "spark.any", "x"))})
    EXPECT_THAT(warnings(requested), IsEmpty());
}

TEST(EnginePods, warn_if_a_job_in_an_mgpu_queue_requests_no_gpu) {
  for (const JobEngine engine : {JobEngine::spark, JobEngine::ray, JobEngine::custom}) {
    const auto pods = engine_pods(request(engine, {}));
    ASSERT_TRUE(pods);
    ASSERT_EQ(pods->warnings.size(), 1u);
    EXPECT_THAT(pods->warnings.front(), ::testing::HasSubstr("divides GPUs, but the job requests none"));
    EXPECT_THAT(engine_pods(request(engine, {}, QueueGpu::none))->warnings, IsEmpty());
  }
}

TEST(EnginePods, allow_every_core_percentage_of_the_vendor) {
  for (const char* core : {"5", "99", "30"})
    EXPECT_THAT(refusals(request(JobEngine::custom, custom(core))), IsEmpty());
  EXPECT_THAT(refusals(request(JobEngine::custom, custom("7"))), IsEmpty());
  for (const char* core : {"5", "95", "99"})
    EXPECT_THAT(refusals(request(JobEngine::custom, custom(core), QueueGpu::mgpu, true)), IsEmpty());
}

TEST(EnginePods, warn_with_both_numbers_if_tasks_cannot_run_at_the_same_time) {
  const auto few_cores = engine_pods(request(JobEngine::spark, spark("0.1", "4")));
  ASSERT_TRUE(few_cores);
  EXPECT_THAT(few_cores->warnings,
              ElementsAre("spark.executor.cores 4 lets 4 tasks of an executor run at the same time, but "
                          "spark.task.resource.gpu.amount 0.1 would allow 10; set spark.executor.cores=10"));
  for (const auto& [amount, cores, way_out] : {std::tuple("0.0001", "1", "amount=1"),
                                               {"0.0001", "4", "amount=0.25"},
                                               {"0.001", "3", "amount=0.3333"},
                                               {"0.05", "4", "spark.executor.cores=20"}}) {
    const auto many = engine_pods(request(JobEngine::spark, spark(amount, cores)));
    ASSERT_TRUE(many);
    EXPECT_THAT(many->warnings.front(), ::testing::EndsWith(way_out));
    EXPECT_EQ(many->tasks_at_once, static_cast<unsigned>(std::stoi(cores)));
  }
  const auto small =
      engine_pods(request(JobEngine::spark, with(spark(), "emr.serverless.mgpu.memory", "1000")));
  ASSERT_TRUE(small);
  EXPECT_THAT(
      small->warnings,
      ElementsAre("if each of 10 simultaneous tasks uses CUDA, their 10 contexts of 256 MiB need 2560 MiB, "
                  "but a slice has 1000 MiB, so only 3 fit; set emr.serverless.mgpu.memory=2560 or more, "
                  "or spark.executor.cores=3"));
  const auto busy = engine_pods(request(JobEngine::ray, with(ray(), "carve.ray.worker.cpus", "20")));
  ASSERT_TRUE(busy);
  EXPECT_THAT(
      busy->warnings,
      ElementsAre("if each of 20 simultaneous tasks uses CUDA, their 20 contexts of 256 MiB need 5120 MiB, "
                  "but a slice has 4096 MiB, so only 16 fit; set emr.serverless.mgpu.memory=5120 or more, "
                  "or carve.ray.worker.cpus=16"));
}

}  // namespace
}  // namespace carve::engines
