// The directories of supervised programs in one folder. The launcher creates and removes them. A directory
// belongs to its program's user, so work inside it is done with that user's rights.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::controller {

// Returns whether the text is a valid name for a program's directory: one component that is not hidden.
bool is_program_name(const std::string& name);

// Returns the open directory, which belongs to the user and to this process's group. Creates it if it is
// missing.
Outcome<os::Fd> make_program_directory(const std::string& folder, const std::string& name, uid_t uid);

// The open directory and its user; no descriptor if the directory does not exist.
struct ProgramDirectory {
  os::Fd fd;
  uid_t uid = 0;
};
Outcome<ProgramDirectory> open_program_directory(const std::string& folder, const std::string& name);

// Irreversibly replaces the rights of this process by those of the user. Returns false if that is not
// permitted.
bool become_user(uid_t uid);

// Deletes the directory: renames it, which frees its name immediately, and deletes its content as its user in
// a separate process. Files that the user made undeletable remain under a hidden name.
Outcome<void> remove_program_directory(const std::string& folder, const std::string& name);

// Forks a process that is not a child of this one and calls `act` in it.
Outcome<void> detach(const std::function<void()>& act);

}  // namespace carve::controller
