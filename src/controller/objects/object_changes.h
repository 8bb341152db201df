// The events of a change of an object: a pure function of the object before and after it. Because every
// action of the controller shows in an object's spec or status, events need no source other than the
// registry's changes, except for a user's request that the objects do not show (undo).
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_record.h"
#include "objects/object_event.h"

namespace carve::controller {

// An event without its object and its time.
struct ChangeEvent {
  objects::EventReason reason = objects::EventReason::created;
  std::string message;

  friend bool operator==(const ChangeEvent&, const ChangeEvent&) = default;
};

// Returns the events of a new object.
std::vector<ChangeEvent> events_of_added(const Object& after);
// Returns the events of a change; empty if it changed nothing that a reader should know.
std::vector<ChangeEvent> events_between(const Object& before, const Object& after);
// Returns the events of a deleted object.
std::vector<ChangeEvent> events_of_deleted(const Object& before);

}  // namespace carve::controller
