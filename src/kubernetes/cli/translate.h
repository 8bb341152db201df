// Manifests as the cluster's webhook would translate them, without a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "wire/api/field_error.h"

namespace carve::kubernetes::cli {

struct Translation {
  std::vector<std::string> documents;  // With pods as the cluster would store them, each as JSON on one line.
  std::vector<std::string> warnings;
};

// Translates the pods of each document (pod_documents.h); a document of another kind comes back as it is,
// with a warning if it has Carve's limits. Fails with every error of every document;
// a message begins with the name of the object.
Result<Translation, api::FieldErrors> translate(std::string_view manifests, const dialects::PodSettings&);

}  // namespace carve::kubernetes::cli
