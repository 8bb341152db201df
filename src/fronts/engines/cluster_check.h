// A document of kind RayCluster, read and checked, and the pods and programs that it means.
#pragma once

#include <string_view>

#include "fronts/engines/engine_pods.h"
#include "wire/objects/ray_cluster_object.h"

namespace carve::fronts {

inline constexpr size_t max_worker_groups = 32;

// Reads the JSON text strictly and returns the cluster, or every error that does not need its queue.
Result<objects::RayCluster, api::FieldErrors> read_ray_cluster(std::string_view json);

// What the pool of a queue has; 0: not known.
struct PoolDevices {
  uint64_t context_bytes = 0;         // Of the largest context.
  uint64_t largest_device_bytes = 0;  // Usable.
};

// Returns the pods: a head without a slice, and the workers, which are counted over the groups. The rules are
// those of a Ray job's keys, and the errors name the fields of the document.
Result<EnginePods, api::FieldErrors> cluster_pods(const objects::RayClusterSpec&, const QueueTerms&,
                                                  const PoolDevices&);

// Returns the job of Ray whose head and workers are those of the cluster (engine_programs.h).
objects::JobSpec job_of_cluster(const objects::RayClusterSpec&);

}  // namespace carve::fronts
