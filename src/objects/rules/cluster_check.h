// Reads and checks a document of kind RayCluster, and returns its pods and programs.
#pragma once

#include <string_view>

#include "engines/engine_pods.h"
#include "objects/ray_cluster_object.h"

namespace carve::objects {

inline constexpr size_t max_worker_groups = 32;

// Parses the JSON text strictly and returns the cluster. Fails with every error that can be found without its
// queue.
Result<objects::RayCluster, api::FieldErrors> read_ray_cluster(std::string_view json);

// The devices in the pool of a queue. 0 means unknown.
struct PoolDevices {
  uint64_t context_bytes = 0;         // Size of the largest context.
  uint64_t largest_device_bytes = 0;  // Usable memory.
};

// Returns the pods: a head without a slice, and the workers, which are numbered across the groups. The rules
// are those for a Ray job's keys, but the errors contain the fields of the document.
Result<engines::EnginePods, api::FieldErrors> cluster_pods(const objects::RayClusterSpec&,
                                                           const engines::QueueTerms&, const PoolDevices&);

// Returns the Ray job that has the head and workers of the cluster (engine_programs.h).
objects::JobSpec job_of_cluster(const objects::RayClusterSpec&);

}  // namespace carve::objects
