// What a user applied, read and checked: the objects that the documents ask for. Pure: texts in, values or
// errors out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fronts/application/application_terms.h"
#include "fronts/eas/eas.h"
#include "wire/api/field_error.h"
#include "wire/objects/kind.h"
#include "wire/objects/service_object.h"

namespace carve::controller {

// How documents may be written. "auto" decides for each document by its fields; "ack", "vke", "hami" and
// "kubernetes" are manifests of Kubernetes.
inline constexpr std::string_view dialects[] = {"auto", "carve", "eas", "ack", "vke", "hami", "kubernetes"};

// What the documents do not say: the nodes of the pool that each of them names.
struct PoolContext {
  fronts::EasContext eas;
  fronts::ApplicationContext application;
};
struct SubmissionContext {
  // Returns what is known of the pool; empty: all nodes.
  std::function<PoolContext(const std::string& pool)> of_pool = [](const std::string&) {
    return PoolContext();
  };
};

struct Submission {
  objects::Kind kind = objects::Kind::service;
  objects::Metadata metadata;
  std::string spec;           // Of the kind, as JSON; of a node, what changes (objects::NodePatchSpec).
  objects::ServiceSpec form;  // The service that it runs as.
  std::vector<std::string> warnings;
};

// Reads all documents of the text, in JSON or YAML. `dialect`: one of `dialects`.
Result<std::vector<Submission>, api::FieldErrors> read_submissions(std::string_view text,
                                                                   std::string_view dialect,
                                                                   const SubmissionContext&);

}  // namespace carve::controller
