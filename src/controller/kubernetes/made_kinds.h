// The kinds of Kubernetes objects that the reconciler makes or follows: one row per kind, from which the paths of
// its requests and of its watches come.
#pragma once

#include <string>
#include <string_view>

#include "core/invariant.h"
#include "wire/api/json_value.h"

namespace carve::controller {

inline constexpr const char* batch_job = "Job";
inline constexpr const char* cluster_queue = "ClusterQueue";
inline constexpr const char* local_queue = "LocalQueue";
inline constexpr const char* resource_flavor = "ResourceFlavor";
inline constexpr const char* priority_class = "WorkloadPriorityClass";
inline constexpr const char* kueue_cohort = "Cohort";
inline constexpr const char* kueue_workload = "Workload";
inline constexpr const char* kueue_version = "kueue.x-k8s.io/v1beta2";

struct MadeKind {
  std::string_view kind, api_version, plural;
  bool has_namespace = true;
  // Several custom resources own one object of the kind together. The last one takes it along.
  bool is_shared = false;
  // A shared object that depends on all of them: each applies the same whole, with all owners.
  bool is_joint = false;
};

inline constexpr MadeKind made_kinds[] = {
    {.kind = "Deployment", .api_version = "apps/v1", .plural = "deployments"},
    {.kind = "Service", .api_version = "v1", .plural = "services"},
    {.kind = "ControllerRevision", .api_version = "apps/v1", .plural = "controllerrevisions"},
    {.kind = "Pod", .api_version = "v1", .plural = "pods"},
    {.kind = batch_job, .api_version = "batch/v1", .plural = "jobs"},
    {.kind = cluster_queue, .api_version = kueue_version, .plural = "clusterqueues", .has_namespace = false},
    {.kind = local_queue, .api_version = kueue_version, .plural = "localqueues"},
    {.kind = resource_flavor,
     .api_version = kueue_version,
     .plural = "resourceflavors",
     .has_namespace = false,
     .is_shared = true},
    {.kind = priority_class,
     .api_version = kueue_version,
     .plural = "workloadpriorityclasses",
     .has_namespace = false,
     .is_shared = true},
    {.kind = kueue_cohort,
     .api_version = kueue_version,
     .plural = "cohorts",
     .has_namespace = false,
     .is_shared = true,
     .is_joint = true},
    {.kind = kueue_workload, .api_version = kueue_version, .plural = "workloads"},
};

inline const MadeKind& made_kind(std::string_view kind) {
  for (const MadeKind& one : made_kinds)
    if (one.kind == kind) return one;
  invariant(false, "every kind that is made has a row");
  return made_kinds[0];
}

// Returns the path of the kind's objects in all namespaces: "/apis/apps/v1/deployments".
std::string path_of(const MadeKind&);
// Returns the path of an object, or of its collection. The object has its kind and its metadata.
std::string path_of(const api::Json& object, bool with_name = true);

}  // namespace carve::controller
