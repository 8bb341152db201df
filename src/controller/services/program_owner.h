// The object that a program and its slice belong to. The reconcilers write it to a separate file
// (`owners/PROGRAM.json`) outside controller.db before they request the slice and start the program. If the
// database loses its newest changes, is replaced by an older copy or is moved aside, the files show which
// programs are left.
#pragma once

#include <cstdint>
#include <string>

#include "controller/objects/object_record.h"
#include "controller/store/stored_records.h"

namespace carve::controller {

struct ProgramOwner {
  std::string kind;  // "Service"; empty if there is only a directory and no file.
  std::string name_space;
  std::string name;
  std::string account;
  uint32_t owner_uid = 0;
  std::string uid;  // Uid of the object.
  std::string request_id;
  std::string node;       // Node of the slice's request; empty if not chosen or without a slice.
  uint32_t index = 0;     // Index of the replica or pod.
  uint32_t revision = 0;  // Revision of a replica.
  std::string spec;       // The part of the object's spec that the revision fixes.
  uint32_t port = 0;      // Port of a replica's program; 0 if it has none.
  uint32_t role = 0;      // Role of a pod.

  friend bool operator==(const ProgramOwner&, const ProgramOwner&) = default;
};

ProgramOwner owner_of(const Object&, const ReplicaRecord&, std::string spec);
ProgramOwner owner_of(const Object&, const PodRecord&);

// Returns whether the program belongs to the object, or to an earlier object of the same user that this
// object replaces.
bool is_owned_by(const ProgramOwner&, const Object&);

}  // namespace carve::controller
