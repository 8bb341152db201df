// The functions and texts of each kind of object that the controller uses, one row per kind.
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_changes.h"
#include "controller/objects/submission.h"
#include "controller/objects/typed_json.h"
#include "objects/kind.h"

namespace carve::controller {

// Adds an event "changed" if the spec has changed.
void add_generation_event(std::vector<ChangeEvent>&, const Object& before, const Object& after);

struct KindRow {
  objects::Kind kind;
  // Parse the JSON of a stored object.
  TypedJson (*read_spec)(std::string json);
  TypedJson (*read_status)(std::string json);
  // Reads a document in Carve's own form, or returns every error.
  DocumentReader read_document;
  std::string (*schema)();  // JSON Schema of its documents.
  // Returns whether a stored spec passes the rules that its later readers rely on. Null if any spec does.
  bool (*has_valid_spec)(const Object&) = nullptr;

  // Events (object_changes.h): the message for a new object, or null for the kind's name; the events of a
  // change; and the message for a deleted object.
  std::string (*made)(const Object&) = nullptr;
  void (*add_changes)(std::vector<ChangeEvent>&, const Object& before,
                      const Object& after) = add_generation_event;
  const char* deleted = "by a user";
};

const KindRow& row_of(objects::Kind);

}  // namespace carve::controller
