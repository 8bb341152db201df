// Derives the pods of a job from its engine's parameters and its queue: its programs, and the part of a GPU
// that each one gets. The keys are those of EMR Serverless mGPU (requirements S4-2 to S4-16). Pure.
//
// * An mGPU queue divides devices: emr.serverless.mgpu.core (percent of one device's compute) and
//   emr.serverless.mgpu.memory (MiB, not rounded) are added to the engine's own GPU amount, which is 1. A GPU
//   queue gives whole devices, as many as the amount.
// * All slices of a job are equal.
// * Spark: a master without a slice (`head`), the executors, and the driver, which has a slice if its amount
//   is 1. Ray: a head and a driver without slices, and the workers. Custom: the tasks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/words.h"
#include "engines/parameters.h"
#include "workload/job.h"
#include "workload/queue.h"

namespace carve::engines {

inline constexpr std::string_view core_key = "emr.serverless.mgpu.core";
inline constexpr std::string_view memory_key = "emr.serverless.mgpu.memory";
inline constexpr uint32_t min_core_percent = 5, max_core_percent = 99;
inline constexpr uint32_t core_step_percent = 5;        // For a strict queue (S4-15).
inline constexpr uint64_t min_strict_memory_mib = 256;  // For a strict queue (S4-15).
// The resources that a Ray worker offers on its node, in addition to its slice.
inline constexpr std::string_view ray_cpus_key = "carve.ray.worker.cpus";
inline constexpr std::string_view ray_memory_key = "carve.ray.worker.memory.bytes";
inline constexpr std::string_view ray_store_key = "carve.ray.worker.store.bytes";
inline constexpr uint64_t min_ray_object_store = uint64_t{75} << 20;  // Ray rejects smaller stores.
inline constexpr uint64_t max_memory_mib = uint64_t{1} << 30;         // 1 PiB; no device has more.

// The limits of a queue for the requests of its jobs.
struct QueueTerms {
  std::string name;
  QueueGpu gpu = QueueGpu::mgpu;
  bool strict = false;
};

struct EngineRequest {
  JobEngine engine = JobEngine::custom;
  Parameters parameters;
  QueueTerms queue;
  uint32_t workers = 1;               // For Ray.
  uint32_t tasks = 1;                 // For a custom job.
  uint64_t context_bytes = 0;         // Largest context of the pool's devices; 0 if unknown.
  uint64_t largest_device_bytes = 0;  // Usable, in the pool; 0 if unknown.
};

struct PodGroup {
  PodRole role = PodRole::task;
  uint32_t count = 1;
  bool has_gpu = true;

  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

struct EnginePods {
  std::vector<PodGroup> groups;  // In the order in which their programs start.
  workload::JobNeed need;        // For the whole job, except its deadline.
  std::vector<std::string> warnings;
  uint32_t executor_cores = 1;  // For Spark.
  // The number of simultaneous tasks in one executor, min(cores, floor(1 / spark.task.resource.gpu.amount)),
  // or the CPUs of one Ray worker.
  uint32_t tasks_at_once = 1;
};

// Returns the pods of the job. Fails with every error.
Result<EnginePods, api::FieldErrors> engine_pods(const EngineRequest&);

// Returns the errors in the keys that start with "carve."; only Ray's workers have such keys.
api::FieldErrors check_carve_keys(JobEngine, const Parameters&);

// Returns the value of a parameter. Empty if it is not set.
std::string value_of(const Parameters&, std::string_view key);

}  // namespace carve::engines
