// What a caller's documents would make of the objects: who owns a new one, who may change one, and what else
// forbids it. Nothing is changed before every document has passed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns what documents do not say: the largest device, the pools.
SubmissionContext submission_context(const Call&);

// Returns the key of the object that the path names. Its namespace is that of the query, which may have
// nothing else.
Outcome<ObjectKey> key_of(const Call&);
// Returns the object that the path names.
Outcome<ObjectRegistry::Pointer> named_object(const Call&);
// Returns the object that the path names if the caller may change it.
Outcome<ObjectRegistry::Pointer> changeable_object(const Call&);

// Returns whether the caller sees the object's environment and logs.
bool may_see_secrets(const http::Caller&, const Object&);

// Returns the object that the submission would make, or what forbids it.
Outcome<Object> planned(const Call&, const Submission&);

struct Kept {
  ObjectRegistry::Pointer object;
  const char* action;  // "created", "configured", "unchanged"
};
// Keeps all planned objects, or none.
Outcome<std::vector<Kept>> keep(const Call&, const std::vector<Object>&);

}  // namespace carve::controller
