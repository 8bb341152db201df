// The part of the service reconciler that records the owners of programs and adopts programs whose records
// are lost.
#include <algorithm>

#include "controller/services/service_reconciler.h"
#include "core/invariant.h"
#include "os/log.h"

namespace carve::controller {

Outcome<void> ServiceReconciler::keep_owner(const Object& object, const ReplicaRecord& replica) {
  return effects_.keep_owner(replica.slice,
                             owner_of(object, replica, records_.spec(replica.uid, replica.revision)));
}

// Returns whether the object has the program's revision. Adds the revision if the object's current spec
// matches it and either its record is lost or the object was submitted again.
bool ServiceReconciler::adopt_revision(const Object& object, const ProgramOwner& owner, Ns now) {
  const std::string known = records_.spec(object.uid, owner.revision);
  if (!known.empty()) return known == owner.spec;
  WorkloadRecord record = records_.workload(object.uid);
  if (record.revision >= owner.revision || owner.spec != revision_spec(service_form(object))) return false;
  record.revision = owner.revision;
  record.revised_ns = now;
  return records_
      .write(record, {.uid = object.uid,
                      .revision = owner.revision,
                      .created_ns = now,
                      .spec = owner.spec,
                      .object_spec = object.spec.json()})
      .has_value();
}

bool ServiceReconciler::adopt(const std::string& program, const ProgramOwner& owner, Ns now) {
  const auto kind = objects::parse_kind(owner.kind);
  if (!kind || !objects::text_of(*kind).is_workload) return false;
  const auto object = objects_.find({*kind, owner.name_space, owner.name});
  if (!object || object->is_ending || !is_owned_by(owner, *object)) return false;
  const auto ports = records_.program_ports();
  if (owner.port != 0 && std::ranges::find(ports, owner.port) != ports.end()) return false;
  const auto seen = effects_.program(program);
  if (!seen || (seen->attempt == 0 && owner.node.empty())) return false;
  if (!adopt_revision(*object, owner, now)) return false;
  const ReplicaRecord replica{.slice = program,
                              .uid = object->uid,
                              .revision = owner.revision,
                              .replica = owner.index,
                              .request_id = owner.request_id,
                              .node = owner.node,
                              .is_granted = true,
                              .port = owner.port,
                              .attempt = seen->attempt};
  invariant(!records_.has_replica(program), "an orphan has no record");
  return keep_owner(*object, replica).has_value() && records_.write(replica).has_value();
}

}  // namespace carve::controller
