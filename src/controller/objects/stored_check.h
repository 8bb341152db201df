// Checks the contents of controller.db before they are used: SQLite finds damaged pages, but not a changed
// value in a page. All other readers of stored objects rely on it.
#pragma once

#include "controller/objects/object_record.h"
#include "core/failure.h"

namespace carve::controller {

// Fails with failed_precondition if this program cannot have written the object.
Outcome<void> check_stored(const Object&);
// Checks the content of a revision, the spec of a service, in the same way.
Outcome<void> check_stored_revision(const std::string& uid, const std::string& spec);

}  // namespace carve::controller
