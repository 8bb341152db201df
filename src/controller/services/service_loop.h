// Keeps services as they are desired: observes their replicas, asks workload::actions() what to do next, and
// carries it out. The loop may be killed between any two steps: a replica's record is written before its
// slice is requested and is removed after the slice has ended, and each effect may be repeated.
//
// What the loop keeps in memory alone is found again after a restart: probes (a replica that the endpoint
// serves counts as ready until its probes fail) and refusals of capacity.
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

class ServiceLoop {
 public:
  ServiceLoop(ObjectRegistry& objects, WorkloadRecords records, Effects& effects)
      : objects_(objects), records_(std::move(records)), effects_(effects) {}

  // Compares every service once and carries out its next actions. `now` is UTC nanoseconds that are not
  // stepped while the process lives. Returns whether something changed, so that the next turn should be soon.
  bool turn(Ns now);

  // Returns whether a record has the program.
  bool has_record(const std::string& program) const { return records_.has_replica(program); }
  // Writes the lost record of a program again, if its object has the program's revision or can have it.
  bool adopt(const std::string& program, const ProgramOwner&, Ns now);
  // Sets which names belong to programs without a record: no replica gets one.
  void set_taken(std::function<bool(const std::string&)> is_taken) { is_taken_ = std::move(is_taken); }

 private:
  // One service in one turn.
  struct Pass {
    ObjectRegistry::Pointer object;
    objects::ServiceSpec spec;
    WorkloadRecord record;
    workload::Service desired;
    workload::ServiceObserved observed;
    std::vector<ReplicaRecord> replicas;                 // Granted; in the order of observed.replicas.
    std::map<std::string, ObservedProgram> programs;     // By slice.
    std::map<std::string, ObservedSlice> slices;         // By name.
    std::set<std::string> silent_nodes;                  // Whose slices are not known in this turn.
    std::optional<workload::AutoscaleDecision> scaling;  // Of a service that scales by its load.
    std::string problem;                                 // Why a step failed; the next turn tries again.
    bool changed = false;
  };
  // Of one replica's program, for the attempt that runs.
  struct Probed {
    uint32_t attempt = 0;
    workload::Probe probe;
    std::string foreign;  // Of the last probe.
  };

  void adopt_endpoints();
  void find_drained_nodes();
  void serve(const ObjectRegistry::Pointer&, Ns now);
  bool assign_port(Pass&);
  bool revise(Pass&, Ns now);
  bool resize(Pass&, const objects::ServiceSpec& old);
  void request_slices(Pass&, Ns now);
  Outcome<void> keep_owner(const Object&, const ReplicaRecord&);
  Outcome<void> grant(const Pass&, ReplicaRecord&, const api::SliceRequest&);
  Outcome<std::vector<std::string>> nodes_with_room(const std::vector<std::string>& nodes,
                                                    const ReplicaRecord&) const;
  workload::HostResources requested_on(const std::string& node) const;
  bool observe(Pass&, Ns now);
  void observe_slices(Pass&);
  bool observe_replica(Pass&, const ReplicaRecord&, Ns now);
  void update_probe(Pass&, const ReplicaRecord&, const ObservedProgram&, workload::Replica&, Ns now);
  void scale(Pass&, bool is_observed, Ns now);
  void carry_out(Pass&, const workload::ServiceAction&, Ns now);
  void create(Pass&, workload::ReplicaId, Ns now);
  void start(Pass&, const ReplicaRecord&, Ns now);
  bool is_starting(const ReplicaRecord&, const ObservedProgram&, Ns now) const;
  void end_slice(Pass&, const ReplicaRecord&);
  bool forget(Pass&, const ReplicaRecord&);
  void write_status(Pass&, Ns now);
  void remove_if_ended(Pass&);
  void publish_endpoints();

  // Returns false and keeps the sentence if the step failed.
  template <class T>
  bool done(Pass& pass, const Outcome<T>& outcome) {
    if (!outcome) keep_problem(pass, outcome.error());
    return outcome.has_value();
  }
  void keep_problem(Pass&, const Failure&);
  bool adopt_revision(const Object&, const ProgramOwner&, Ns now);

  ObjectRegistry& objects_;
  WorkloadRecords records_;
  Effects& effects_;
  std::map<std::string, Probed> probes_;  // By slice.
  // Starts whose supervisor has not written yet that it began, by slice: the attempt and when it was asked
  // for.
  struct AskedStart {
    uint32_t attempt = 0;
    Ns at = 0;
  };
  std::map<std::string, AskedStart> asked_starts_;
  ServiceScaler scaler_;
  std::map<std::string, SliceRefusal> refusals_;                   // By uid.
  std::map<std::string, std::map<std::string, uint32_t>> served_;  // Ports of published replicas: uid, slice.
  std::map<std::string, workload::EndpointState> endpoint_states_;  // By slice, of this turn.
  // The status of the last turn with its JSON, so that an unchanged one is neither parsed nor kept again.
  struct WrittenStatus {
    std::string json;
    objects::ServiceStatus status;
  };
  std::map<std::string, WrittenStatus> written_statuses_;  // By uid.
  std::map<std::string, std::string> resized_;             // By uid: what the last change of size did.
  std::set<std::string> drained_nodes_;                    // Of this turn.
  std::vector<ServiceEndpoint> published_;
  std::function<bool(const std::string&)> is_taken_;
  bool adopted_ = false;  // The endpoints' servers were read once.
  bool changed_ = false;
};

}  // namespace carve::controller
