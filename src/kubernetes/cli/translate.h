// Translates manifests as the cluster's webhook would, without a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "wire/api/field_error.h"

namespace carve::kubernetes::cli {

struct Translation {
  std::vector<std::string> documents;  // JSON on one line, with pods as the cluster would store them.
  std::vector<std::string> warnings;
};

// Translates the pods of each document (pod_documents.h). A document of another kind is returned unchanged,
// with a warning if it contains Carve's limits. Fails with every error of every document; each message starts
// with the object's name.
Result<Translation, api::FieldErrors> translate(std::string_view manifests, const dialects::PodSettings&);

// Translates the pods into pods with resource claims (DRA); each document follows its claim templates.
Result<Translation, api::FieldErrors> translate_to_claims(std::string_view manifests,
                                                          const dialects::PodSettings&);

}  // namespace carve::kubernetes::cli
