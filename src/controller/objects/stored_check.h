// Checks what controller.db has before it is used: SQLite finds damaged pages, and not a value in a page that
// has changed. All else that reads stored objects relies on it.
#pragma once

#include "controller/objects/object_record.h"
#include "core/failure.h"

namespace carve::controller {

// Fails with failed_precondition if the object is none that this program wrote.
Outcome<void> check_stored(const Object&);
// The same for what a revision has: the spec of a service.
Outcome<void> check_stored_revision(const std::string& uid, const std::string& spec);

}  // namespace carve::controller
