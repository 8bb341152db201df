// The controller's representation of an object of any kind. The kind decides the types of `spec` and `status`
// (kind_table.h).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "controller/objects/typed_json.h"
#include "core/event_budget.h"
#include "objects/kind.h"
#include "objects/object.h"

namespace carve::controller {

struct ObjectKey {
  objects::Kind kind = objects::Kind::service;
  std::string namespace_ = "default";
  std::string name;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// Returns "service default/a", for messages and the log.
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
  bool is_ending = false;  // Deleted by a user; it is removed when its programs have ended.
  TypedJson spec;
  TypedJson status;

  friend bool operator==(const Object&, const Object&) = default;
};

// Returns the object as a JSON document. `hide_environment` replaces the values of spec.run.env and other
// potential secrets.
std::string document_of(const Object&, bool hide_environment = false);

// Returns the object's owner as the cause of log lines about the object.
Cause cause_of(const Object&);

// Returns the object's metadata in the form used in documents.
objects::Metadata metadata_of(const Object&);

}  // namespace carve::controller
