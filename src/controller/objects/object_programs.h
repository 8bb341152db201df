// The programs of an object whose output is kept: replicas of a service, pods of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/objects/object_record.h"

namespace carve::controller {

struct ObjectProgram {
  std::string name;  // Of its directory.
  std::string role;  // Of a pod; "replica".
  uint32_t index = 0;
};

// Returns the programs that the object's status names.
std::vector<ObjectProgram> programs_of(const Object&);

// Returns the roles that programs of the object have, also before they are started.
std::vector<std::string_view> roles_of(const Object&);

// Returns whether the object is a job that has ended, so that its programs write nothing more.
bool is_finished_job(const Object&);

}  // namespace carve::controller
