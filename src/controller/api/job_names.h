// The names of jobs and clusters. Programs and slices are named after them, so both kinds and all namespaces
// share one set of names. Two jobs of the same name would share programs.
#pragma once

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns the document in the same request with this kind and name, or null.
const Submission* document_beside(const Call&, objects::Kind, const std::string& name);

// Returns the rejection of a new job or cluster with this key if its name is taken; no value if the name is
// free or empty.
std::optional<http::Response> refused_name(const Call&, const ObjectKey&);

// Returns a name for a document without one. The name ends with a number: the first one, starting at the
// registry's next version, for which no job has the name and no earlier document of the request gets it.
std::string new_name(const Call&, const Submission&, const std::string& engine);

}  // namespace carve::controller
