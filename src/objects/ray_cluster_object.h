// kind: RayCluster. A Ray cluster that stays: a head without a GPU, and workers in slices of their own.
// Programs are submitted to it with Ray's own job client.
#pragma once

#include "objects/job_object.h"
#include "wire/api/json.h"

namespace carve::objects {

// Equal workers.
struct RayWorkers {
  uint32_t replicas = 1;     // Number of workers, each in a slice of its own.
  uint32_t mgpu_core = 0;    // Percent of a device's compute, 5 to 99; 0 for a whole device, in a GPU queue.
  uint64_t mgpu_memory = 0;  // MiB.
};

struct RayClusterSpec {
  std::string queue;                              // Name of its queue.
  std::string compute_group = "default";          // One of the queue's groups.
  std::vector<RayWorkers> workers;                // Groups of equal workers.
  std::string engine_home;                        // Folder of the program `ray`.
  std::map<std::string, std::string> parameters;  // carve.ray.worker.* (ray.md).
  std::map<std::string, std::string> env;         // For the head and the workers.
  int32_t priority = 0;                           // In its queue; a higher number is first.
};

struct RayCluster {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  RayClusterSpec spec;
  JobStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::RayClusterSpec)
CARVE_DECLARE_DOCUMENT(objects::RayCluster)
