// The part of the service reconciler that ends run-once services: it stops them, keeps the results and logs
// of their programs, and runs them again if they change.
#include "controller/objects/service_form.h"
#include "controller/services/service_reconciler.h"
#include "controller/services/service_status.h"
#include "os/log.h"

namespace carve::controller {

// Runs run-once programs that have ended again if their command has changed.
void ServiceReconciler::run_changed_again(Turn& turn) {
  const bool has_run = !turn.object->status.as<objects::ServiceStatus>().ended.empty();
  if (!has_run || !turn.spec.stopped || turn.object->is_ending ||
      records_.spec(turn.record.uid, turn.record.revision) == revision_spec(turn.spec))
    return;
  const auto started = objects_.update(turn.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid == turn.object->uid) edit_workload(object, [](auto& spec) { spec.stopped = false; });
    return {};
  });
  if (!done(turn, started)) return;
  turn.object = objects_.find(turn.object->key);
  turn.spec.stopped = false;
  turn.changed = true;
}

// Marks the service as finished; the next turns retire the replicas.
void ServiceReconciler::finish(Turn& turn) {
  std::string ended(succeeded_exit);
  for (const ReplicaRecord& replica : turn.replicas) {
    const ObservedProgram& program = turn.programs.at(replica.slice);
    const auto slice = turn.slices.find(replica.slice);
    if (program.exit_status != 0)
      ended = exit_of(program, slice == turn.slices.end() ? nullptr : &slice->second);
  }
  const auto stopped = objects_.update(turn.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid != turn.object->uid) return {};
    edit_workload(object, [](auto& spec) { spec.stopped = true; });
    // The end is stored with the stop, so that it is kept even if the controller is killed before the next
    // status.
    auto status = object.status.as<objects::ServiceStatus>();
    status.ended = ended;
    object.status.set(std::move(status));
    return {};
  });
  if (!done(turn, stopped)) return;
  os::log::info(cause_of(*turn.object), "{}: its programs have ended: {}", text(turn.object->key), ended);
  turn.object = objects_.find(turn.object->key);
  turn.spec.stopped = true;
  turn.desired.replicas = 0;
  turn.ended = std::move(ended);
  turn.changed = true;
}

bool ServiceReconciler::keep_log(Turn& turn, ReplicaRecord replica) {
  replica.request_id.clear();
  replica.port = 0;
  turn.ended_replicas.push_back(replica);
  return done(turn, records_.write(replica));
}

// Frees the names of the replicas and programs before the service runs again.
void ServiceReconciler::forget_ended(Turn& turn) {
  for (const ReplicaRecord& replica : records_.replicas(turn.record.uid)) {
    if (!replica.has_ended()) continue;
    effects_.forget_program(replica.slice);
    done(turn, records_.remove(replica));
    turn.changed = true;
  }
}

}  // namespace carve::controller
