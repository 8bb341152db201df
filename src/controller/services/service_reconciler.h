// Reconciles services with their desired state: observes their replicas, calls workload::actions() for the
// next steps, and carries them out. The reconciler may be killed between any two steps: a replica's record is
// written before its slice is requested and is removed after the slice has ended, and each effect may be
// repeated.
//
// Some state is kept only in memory and is rediscovered after a restart: probes (a replica that the endpoint
// serves counts as ready until its probes fail) and rejections for lack of capacity.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "controller/objects/object_registry.h"
#include "controller/services/effects.h"
#include "controller/services/service_scaler.h"
#include "controller/services/workload_records.h"
#include "workload/host_fit.h"

namespace carve::controller {

class ServiceReconciler {
 public:
  ServiceReconciler(ObjectRegistry& objects, WorkloadRecords records, Effects& effects)
      : objects_(objects), records_(std::move(records)), effects_(effects) {}

  // Reconciles every service once. `now` is UTC in nanoseconds; it must not be stepped while the process
  // lives. Returns whether something changed, so that the next turn should be soon.
  bool reconcile(Ns now);

  // Returns whether a record exists for the program.
  bool has_record(const std::string& program) const { return records_.has_replica(program); }
  // Rewrites the lost record of a program if its object has, or can have, the program's revision.
  bool adopt(const std::string& program, const ProgramOwner&, Ns now);
  // Sets the predicate for names that belong to programs without a record. No replica gets one of these
  // names.
  void set_taken(std::function<bool(const std::string&)> is_taken) { is_taken_ = std::move(is_taken); }

 private:
  // One service during one turn.
  struct Turn {
    ObjectRegistry::Pointer object;
    objects::ServiceSpec spec;
    WorkloadRecord record;
    workload::Service desired;
    workload::ServiceObserved observed;
    std::vector<ReplicaRecord> replicas;        // Granted replicas, in the order of observed.replicas.
    std::vector<ReplicaRecord> ended_replicas;  // Replicas of run-once programs whose slices have ended.
    std::map<std::string, ObservedProgram> programs;     // Keyed by slice.
    std::map<std::string, ObservedSlice> slices;         // Keyed by name.
    std::set<std::string> silent_nodes;                  // Nodes whose slices are unknown in this turn.
    std::optional<workload::AutoscaleDecision> scaling;  // Set for a service that scales by its load.
    std::string lacks_room;                              // Why no old replica is stopped for a new one.
    std::string ended;                                   // How its run-once programs ended.
    std::string problem;                                 // Why a step failed; the next turn retries it.
    bool changed = false;
  };
  // Probe state of one replica's program, for the running attempt.
  struct Probed {
    uint32_t attempt = 0;
    workload::Probe probe;
    std::string foreign;  // From the last probe.
  };

  void adopt_endpoints();
  void find_drained_nodes();
  void serve(const ObjectRegistry::Pointer&, Ns now);
  bool assign_port(Turn&);
  void finish(Turn&);
  Outcome<uint32_t> program_port(const Turn&);
  bool revise(Turn&, Ns now);
  bool resize(Turn&, const objects::ServiceSpec& old);
  void request_slices(Turn&, Ns now);
  Outcome<void> keep_owner(const Object&, const ReplicaRecord&);
  Outcome<void> grant(const Turn&, ReplicaRecord&, const api::SliceRequest&);
  Outcome<std::vector<std::string>> nodes_with_room(const std::vector<std::string>& nodes,
                                                    const ReplicaRecord&) const;
  workload::HostResources requested_on(const std::string& node) const;
  bool observe(Turn&, Ns now);
  void observe_slices(Turn&);
  bool observe_replica(Turn&, const ReplicaRecord&, Ns now);
  void update_probe(Turn&, const ReplicaRecord&, const ObservedProgram&, workload::Replica&, Ns now);
  Outcome<void> check_room(const Turn&, std::span<const workload::ReplicaId> ended);
  void scale(Turn&, bool is_observed, Ns now);
  void carry_out(Turn&, const workload::ServiceAction&, Ns now);
  void create(Turn&, workload::ReplicaId, Ns now);
  void start(Turn&, const ReplicaRecord&, Ns now);
  bool is_starting(const ReplicaRecord&, const ObservedProgram&, Ns now) const;
  void end_slice(Turn&, const ReplicaRecord&);
  bool forget(Turn&, const ReplicaRecord&);
  bool keep_log(Turn&, ReplicaRecord);
  void forget_ended(Turn&);
  void run_changed_again(Turn&);
  void write_status(Turn&, Ns now);
  void remove_if_ended(Turn&);
  void publish_endpoints();
  void report_endpoints(const std::string& problem);  // Empty if there is no problem.

  // Returns false and records the message if the step failed.
  template <class T>
  bool done(Turn& turn, const Outcome<T>& outcome) {
    if (!outcome) keep_problem(turn, outcome.error());
    return outcome.has_value();
  }
  void keep_problem(Turn&, const Failure&);
  bool adopt_revision(const Object&, const ProgramOwner&, Ns now);

  ObjectRegistry& objects_;
  WorkloadRecords records_;
  Effects& effects_;
  std::map<std::string, Probed> probes_;  // Keyed by slice.
  // A start that the supervisor has not recorded yet: the attempt, and when it was requested.
  struct AskedStart {
    uint32_t attempt = 0;
    Ns at = 0;
  };
  std::map<std::string, AskedStart> asked_starts_;
  ServiceScaler scaler_;
  std::map<std::string, SliceRefusal> refusals_;                    // Keyed by uid.
  std::map<std::string, std::map<std::string, uint32_t>> served_;   // Published ports, by uid and slice.
  std::map<std::string, workload::EndpointState> endpoint_states_;  // Keyed by slice, for this turn.
  std::map<std::string, std::string> resized_;  // Result of the last change of size, by uid.
  std::set<std::string> drained_nodes_;         // Nodes drained in this turn.
  std::vector<ServiceEndpoint> published_;
  std::string endpoints_problem_;  // The last problem that was logged.
  std::function<bool(const std::string&)> is_taken_;
  bool adopted_ = false;  // Whether the endpoints' servers were read.
  bool changed_ = false;
};

}  // namespace carve::controller
