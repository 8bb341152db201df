// The programs of an object whose output is kept: the replicas of a service or the pods of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/objects/object_record.h"

namespace carve::controller {

struct ObjectProgram {
  std::string name;  // Name of its directory.
  std::string role;  // Role of a pod, or "replica".
  uint32_t index = 0;
};

// Returns the programs in the object's status.
std::vector<ObjectProgram> programs_of(const Object&);

// Returns the roles of the object's programs, including programs that have not started.
std::vector<std::string_view> roles_of(const Object&);

// Returns whether the object is a job that has ended, whose programs write no more output.
bool is_finished_job(const Object&);

}  // namespace carve::controller
