// The documents that a user applied, parsed and checked: the desired objects. All functions are pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/objects/typed_json.h"
#include "dialects/application/application_terms.h"
#include "dialects/eas/eas.h"
#include "objects/kind.h"
#include "objects/service_object.h"
#include "wire/api/field_error.h"

namespace carve::controller {

// The dialects of documents. "auto" detects the dialect of each document by its fields; "ack", "vke", "hami"
// and "kubernetes" are Kubernetes manifests.
inline constexpr std::string_view dialects[] = {"auto", "carve", "eas", "ack", "vke", "hami", "kubernetes"};

// Context that is not in the documents: the nodes of the pool that each document names.
struct PoolContext {
  dialects::EasContext eas;
  dialects::ApplicationContext application;
};
struct SubmissionContext {
  bool allows_unknown_gpu_requests = false;  // For manifests (dialects/pod/unknown_requests.h).
  // Returns the context of a pool; an empty name means all nodes.
  std::function<PoolContext(const std::string& pool)> of_pool = [](const std::string&) {
    return PoolContext();
  };
};

struct Submission {
  objects::Kind kind = objects::Kind::service;
  objects::Metadata metadata;
  TypedJson spec;             // The kind's spec; for a node, its changes (objects::NodePatchSpec).
  objects::ServiceSpec form;  // The service that runs for it.
  std::vector<std::string> warnings;
};

// Reads one document, or returns every error.
using DocumentReader = Result<Submission, api::FieldErrors> (*)(const std::string& text,
                                                                const SubmissionContext&);

// Parses all documents of the text, in JSON or YAML. `dialect` is one of `dialects`.
Result<std::vector<Submission>, api::FieldErrors> read_submissions(std::string_view text,
                                                                   std::string_view dialect,
                                                                   const SubmissionContext&);

}  // namespace carve::controller
