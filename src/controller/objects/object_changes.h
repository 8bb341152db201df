// Derives events from a change to an object: a pure function of the object before and after the change. Every
// action of the controller changes an object's spec or status, so the registry's changes are the only source
// of events, except for an undo, which does not show in the objects.
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
// Returns the events of a change; empty if it changed nothing of interest.
std::vector<ChangeEvent> events_between(const Object& before, const Object& after);
// Returns the events of a deleted object.
std::vector<ChangeEvent> events_of_deleted(const Object& before);

}  // namespace carve::controller
