// Checks the contents of controller.db before they are used, because SQLite detects damaged pages but not a
// changed value in a page. All other readers of stored objects rely on this check.
#pragma once

#include "controller/objects/object_record.h"
#include "core/failure.h"

namespace carve::controller {

// Fails with failed_precondition if the stored object cannot have been written by this program.
Outcome<void> check_stored(const Object&);
// Return whether the spec passes the rules that its later readers rely on.
bool is_valid_service(const Object&);
bool is_valid_application(const Object&);
bool is_valid_tariff(const Object&);
// Checks a stored revision, which is the spec of a service, in the same way.
Outcome<void> check_stored_revision(const std::string& uid, const std::string& spec);

}  // namespace carve::controller
