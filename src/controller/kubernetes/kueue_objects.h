// The objects of Kueue that make a Queue admit jobs in a cluster. Pure.
//
//   Queue            ClusterQueue of the same name, in the cohort of its pool
//   its namespaces   LocalQueue of the same name in every namespace with jobs of the queue
//   its pool         ResourceFlavor "carve" (any node) or "carve-POOL" (nodes with the label carve.dev/pool=POOL), and a
//                    Cohort of the same name, with the devices of the pool that are in no queue's quota
//   priorities       WorkloadPriorityClass for every priority other than 0 of its jobs
//
// Kueue counts the resources in the limits of a job's pods: carve.dev/memory in bytes and carve.dev/compute in
// percent of a device, or carve.dev/devices in a queue of whole devices. So Kueue needs no configuration. A queue
// whose quota is idle lends it to the others of its pool, and so does the cohort; a running job is never stopped to get
// quota back.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/kubernetes/cluster_capacity.h"
#include "controller/kubernetes/workload_objects.h"

namespace carve::controller {

inline constexpr const char* queue_name_label = "kueue.x-k8s.io/queue-name";
inline constexpr const char* priority_class_label = "kueue.x-k8s.io/priority-class";

inline constexpr uint64_t percent_bp = 100;  // Basis points; Kueue counts compute in percent.

// The jobs of a queue, as far as its objects depend on them.
struct QueueUse {
  std::set<std::string> namespaces;
  std::set<int32_t> priorities;
};

// Returns the objects except the cohort, or every field that cannot be expressed in Kueue. Warnings name fields without effect.
Result<OwnedObjects, api::FieldErrors> queue_objects(const Object& queue, const QueueUse&);

// Returns the Cohort of a pool. `queues` are all of its queues, at least one.
api::Json cohort_object(const std::string& pool, const std::vector<const Object*>& queues,
                        const DeviceAmounts& capacity);

// Returns "carve-5", "carve-minus-5".
std::string priority_class_name(int32_t priority);

}  // namespace carve::controller
