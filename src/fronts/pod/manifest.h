// Manifests of Kubernetes on one machine: a Pod, Deployment or StatefulSet to an objects::Service. It takes
// the name, the namespace, the labels, the annotations, the replicas, and of the first container its image,
// command, args, env and resources (pod_requests.h). Each other field has no effect, and a warning names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"
#include "wire/objects/service_object.h"

namespace carve::fronts {

struct ManifestService {
  objects::Service
      service;  // Its spec.source has the manifest, with the dialect "ack", "vke", "hami" or "kubernetes".
  std::vector<std::string> warnings;
};

// Returns whether the document is a JSON object of one of the three kinds.
bool is_manifest(std::string_view json);

// Returns the service that the manifest describes, or every error of the manifest.
Result<ManifestService, api::FieldErrors> from_manifest(std::string_view json);

}  // namespace carve::fronts
