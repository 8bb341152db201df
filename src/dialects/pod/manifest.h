// Translates Kubernetes manifests for one machine: a Pod, Deployment or StatefulSet becomes an
// objects::Service. It uses the name, the namespace, the labels, the annotations, the replicas, and the
// image, command, args, env and resources (pod_requests.h) of one container: the one that requests a GPU,
// otherwise the first one. More than one container that requests a GPU is an error. All other fields have no
// effect and cause a warning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::dialects {

struct ManifestService {
  objects::Service
      service;  // Its spec.source has the manifest, with the dialect "ack", "vke", "hami" or "kubernetes".
  std::vector<std::string> warnings;
};

// The annotation of a service whose replicas are named NAME-ORDINAL, like the pods of a StatefulSet.
inline constexpr const char* replica_names_annotation = "carve.dev/replica-names";
inline constexpr const char* ordinal_names = "ordinal";

// Returns whether the document is a JSON object of one of the three kinds.
bool is_manifest(std::string_view json);

// Returns the service that the manifest describes. Fails with every error of the manifest.
Result<ManifestService, api::FieldErrors> from_manifest(std::string_view json,
                                                        const PodSettings& settings = {});

}  // namespace carve::dialects
