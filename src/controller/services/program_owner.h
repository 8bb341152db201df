// The object that a program and its slice belong to. The service and the job loop write it, before they
// request the slice, into a file of its own apart from controller.db (`owners/PROGRAM.json`). If the database
// loses its newest changes, is replaced by an older copy or is moved aside, the files show which programs are
// left.
#pragma once

#include <cstdint>
#include <string>

#include "controller/objects/object_record.h"
#include "controller/store/stored_records.h"

namespace carve::controller {

struct ProgramOwner {
  std::string kind;  // "Service"; empty: there is no file, only a directory.
  std::string name_space;
  std::string name;
  std::string account;
  uint32_t owner_uid = 0;
  std::string uid;  // Of the object.
  std::string request_id;
  std::string node;       // Where the slice is requested; empty: not chosen, or no slice.
  uint32_t index = 0;     // Of the replica or the pod.
  uint32_t revision = 0;  // Of a replica.
  std::string spec;       // What of the object's spec the revision fixes.
  uint32_t port = 0;      // Of a replica's program; 0: none.
  uint32_t role = 0;      // Of a pod.

  friend bool operator==(const ProgramOwner&, const ProgramOwner&) = default;
};

ProgramOwner owner_of(const Object&, const ReplicaRecord&, std::string spec);
ProgramOwner owner_of(const Object&, const PodRecord&);

// Returns whether the program belongs to the object, or to an object that the same user submitted in its
// place.
bool is_owned_by(const ProgramOwner&, const Object&);

}  // namespace carve::controller
