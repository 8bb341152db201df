// A job or a Ray cluster as manifests of Kubernetes, where its engine's own operator or scheduler runs it:
//
//   custom      a Job (batch/v1) with an index for each task
//   ray         a RayJob of KubeRay (ray.io/v1) with its cluster
//   spark       a pod template for Spark's own Kubernetes master; the spark-submit that reads it is a comment
//   RayCluster  a RayCluster of KubeRay
//
// Each container with a GPU has our resources (carve.dev/memory, compute, devices), which `carve apply` and
// the cluster's webhook read. What a job has and Kubernetes has not is a warning.
#pragma once

#include "fronts/engines/engine_pods.h"
#include "fronts/render/manifests.h"
#include "wire/objects/job_object.h"
#include "wire/objects/ray_cluster_object.h"

namespace carve::fronts {

// `pods` is engine_pods() of the job.
Manifests job_manifests(const objects::Metadata&, const objects::JobSpec&, const EnginePods& pods);
// `pods` is cluster_pods() of the cluster.
Manifests cluster_manifests(const objects::Metadata&, const objects::RayClusterSpec&, const EnginePods& pods);

}  // namespace carve::fronts
