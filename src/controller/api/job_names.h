// The names of jobs and clusters. Programs and slices are named after them, so both kinds and all namespaces
// share the names: two jobs of one name would have each other's programs.
#pragma once

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns the document of this kind and name in the same request, or null.
const Submission* document_beside(const Call&, objects::Kind, const std::string& name);

// Returns the answer that refuses a new job or cluster with this key, because its name is taken; no value if
// it is free, or empty.
std::optional<http::Response> refused_name(const Call&, const ObjectKey&);

// Returns a name for the document, which has none: the first number from the registry's next version on that
// no job has, and none of the documents before it in the request gets.
std::string new_name(const Call&, const Submission&, const std::string& engine);

}  // namespace carve::controller
