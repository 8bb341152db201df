// An object as the controller keeps it: the same for every kind. `spec` and `status` are JSON objects, which
// the code of the kind reads (wire/objects).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "wire/objects/kind.h"
#include "wire/objects/object.h"

namespace carve::controller {

struct ObjectKey {
  objects::Kind kind = objects::Kind::service;
  std::string namespace_ = "default";
  std::string name;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// Returns "service default/a", for sentences and the log.
std::string text(const ObjectKey&);

struct Object {
  ObjectKey key;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string account;
  std::string uid;
  uint32_t owner_uid = 0;
  uint32_t generation = 1;
  uint64_t version = 0;    // metadata.resourceVersion.
  int64_t created_ns = 0;  // UTC.
  bool is_ending = false;  // Deleted by a user; it goes when its programs have ended.
  std::string spec = "{}";
  std::string status = "{}";

  friend bool operator==(const Object&, const Object&) = default;
};

// Returns the object as a JSON document. `hide_environment` replaces the values of spec.run.env and of what
// else may be secret.
std::string document_of(const Object&, bool hide_environment = false);

// Returns the metadata as documents have it.
objects::Metadata metadata_of(const Object&);

}  // namespace carve::controller
