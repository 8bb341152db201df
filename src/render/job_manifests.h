// Renders a job or a Ray cluster as Kubernetes manifests, which its engine's own operator or scheduler runs:
//
//   custom      a Job (batch/v1) with an index for each task
//   ray         a RayJob of KubeRay (ray.io/v1) with its cluster
//   spark       a pod template for Spark's own Kubernetes master; the spark-submit that reads it is a comment
//   RayCluster  a RayCluster of KubeRay
//
// A job without an image is rendered with the word IMAGE in its place. Each container with a GPU has Carve's resources (carve.dev/memory, compute, devices), which `carve apply`
// and the cluster's webhook read. Settings of a job without a counterpart in Kubernetes cause warnings.
#pragma once

#include "engines/engine_pods.h"
#include "objects/job_object.h"
#include "objects/ray_cluster_object.h"
#include "render/manifests.h"

namespace carve::render {

// Returns the Job of a custom job: what job_manifests() prints. `pods` is the result of engine_pods() for the job.
api::Json indexed_job(const objects::Metadata&, const objects::JobSpec&, const engines::EnginePods& pods);
// `pods` is as above.
Manifests job_manifests(const objects::Metadata&, const objects::JobSpec&, const engines::EnginePods& pods);
// `pods` is the result of cluster_pods() for the cluster.
Manifests cluster_manifests(const objects::Metadata&, const objects::RayClusterSpec&,
                            const engines::EnginePods& pods);

}  // namespace carve::render
