// Converts between the controller's objects and custom resources. Pure.
//
//   | Object                   | custom resource                                                               |
//   |--------------------------|-------------------------------------------------------------------------------|
//   | account                  | label carve.dev/account                                                       |
//   | owner_uid                | annotation carve.dev/owner-uid; 0 (root) if another program made the object   |
//   | version, created_ns      | metadata.resourceVersion, metadata.creationTimestamp                          |
//   | is_ending                | metadata.deletionTimestamp                                                    |
//
// Labels and annotations of Kubernetes and kubectl stay in the custom resource and are not shown in the object.
#pragma once

#include <optional>
#include <string>

#include "controller/objects/object_record.h"
#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::controller {

inline constexpr const char* account_label = "carve.dev/account";
inline constexpr const char* owner_uid_annotation = "carve.dev/owner-uid";

// A custom resource that was read. Its document may break rules that its definition cannot express; such an
// object is shown by the cluster only.
struct CustomObject {
  Object object;            // If there are errors, only its metadata and status are set.
  api::FieldErrors errors;  // Of its document, each with its field.
};

// Reads a custom resource. Fails with a message if it lacks metadata that every API server sets.
Result<CustomObject, std::string> read_custom_object(objects::Kind, const api::Json& resource);

// Returns the custom resource to create for the object. Fields with their defaults are left out of its spec.
api::Json new_custom_resource(const Object&);

// Returns the merge patch that changes `before` to `after`; null if nothing of the document changes. It contains
// the version of `before`, so that it fails if another program has changed the object. The status is not part
// of it.
api::Json change_of_custom_resource(const Object& before, const Object& after);

}  // namespace carve::controller
