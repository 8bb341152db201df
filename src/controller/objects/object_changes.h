// What a change of an object tells its readers: a pure function of the object before and after it. Because
// all that the controller does shows in an object's spec or status, events need no other source than the
// registry's changes, except for what a user asked for and the objects do not show (undo).
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_record.h"
#include "wire/objects/object_event.h"

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
// Returns the events of an object that is gone.
std::vector<ChangeEvent> events_of_deleted(const Object& before);

}  // namespace carve::controller
