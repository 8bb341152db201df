// The directories of supervised programs, one for each, in one folder. The launcher makes and removes them. A
// directory belongs to its program's user, so work inside it is done with the rights of that user.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::controller {

// Returns whether the text may be the name of a program's directory: one component that is not hidden.
bool is_program_name(const std::string& name);

// Returns the directory, open. It is created if it is missing, and belongs to the user and to this process's
// group.
Outcome<os::Fd> make_program_directory(const std::string& folder, const std::string& name, uid_t uid);

// Returns the directory, open, and its user; no descriptor if it does not exist.
struct ProgramDirectory {
  os::Fd fd;
  uid_t uid = 0;
};
Outcome<ProgramDirectory> open_program_directory(const std::string& folder, const std::string& name);

// Drops the rights of this process for those of the user, irreversibly. Returns false if it may not.
bool become_user(uid_t uid);

// Deletes the directory: renames it, which frees its name immediately, and deletes its content as its user in
// a separate process. Files that the user made undeletable stay under the hidden name.
Outcome<void> remove_program_directory(const std::string& folder, const std::string& name);

// Forks a process that is not a child of this one and calls `act` in it.
Outcome<void> detach(const std::function<void()>& act);

}  // namespace carve::controller
