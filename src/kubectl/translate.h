// What the cluster's webhook would make of manifests, without a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fronts/pod/pod_settings.h"
#include "wire/api/field_error.h"

namespace carve::kubectl {

struct Translation {
  std::vector<std::string> documents;  // With pods as the cluster would keep them, each as JSON in one line.
  std::vector<std::string> warnings;
};

// Translates the pods of each document (pod_documents.h); a document of another kind comes back as it is,
// with a warning if it has our limits. Fails with every error of every document;
// a sentence begins with the name of the object.
Result<Translation, api::FieldErrors> translate(std::string_view manifests, const fronts::PodSettings&);

}  // namespace carve::kubectl
