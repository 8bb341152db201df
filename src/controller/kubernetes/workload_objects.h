// The Kubernetes objects of a service or an application: those that `carve render` prints (render/manifests.h),
// with an owner, so that Kubernetes deletes them with the custom resource, and a mark of the document from which
// they were made. Pure.
//
// The mark consists of the custom resource's generation and of a digest of its metadata. An object with the
// current mark is not applied again, so neither a restart nor another version of the controller changes pods.
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_record.h"
#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::controller {

inline constexpr const char* managed_by_label = "app.kubernetes.io/managed-by";
inline constexpr const char* managed_by_carve = "carve";
inline constexpr const char* applied_annotation = "carve.dev/applied";

struct OwnedObjects {
  std::vector<api::Json> objects;
  std::vector<std::string> warnings;
};

// Returns the objects, or every field that cannot be expressed in Kubernetes.
Result<OwnedObjects, api::FieldErrors> owned_objects(const Object&);

// Returns a digest for marks: 16 digits.
std::string digest_of(const std::string& text);

// Returns the mark of the object's current document: "3-0a1b2c3d4e5f6071".
std::string applied_mark(const Object&);

// Returns the label selector of its pods.
std::string pod_selector(const Object&);

// Returns the reference to the custom resource as the owner of an object.
api::Json owner_reference(const Object&, bool is_controller);

// Marks the pods of a template, so that a watch selects them and their usage is billed to the account.
void mark_pods(api::Json& pod_template, const Object&);

}  // namespace carve::controller
