// The service reconciler's records, in memory and in controller.db: workloads, revisions and replicas. A
// record is stored before it is visible. A revision's spec is parsed once, when its record is stored. Used by
// one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/store/controller_store.h"
#include "objects/service_object.h"

namespace carve::controller {

inline constexpr unsigned max_kept_revisions = 10;

class WorkloadRecords {
 public:
  static Outcome<WorkloadRecords> read(ControllerStore&);
  // Begins with these records, which `journal` must already contain.
  WorkloadRecords(WorkloadJournal& journal, const std::vector<WorkloadRecord>&,
                  const std::vector<RevisionRecord>&, const std::vector<ReplicaRecord>&);

  // Returns the record of an object, or a new record if it has none.
  WorkloadRecord workload(const std::string& uid) const;
  // Returns the spec of a kept revision. The reference is valid until a revision of the object is written.
  const objects::ServiceSpec& form(const std::string& uid, uint32_t revision) const;
  // Returns the same spec as JSON, or an empty string if the revision is not kept.
  std::string spec(const std::string& uid, uint32_t revision) const;
  std::vector<ReplicaRecord> replicas(const std::string& uid) const;  // Ordered by slice name.
  bool has_replica(const std::string& slice) const;
  // Returns the ports of all programs, or of all endpoints, in the records.
  std::vector<uint32_t> program_ports() const;
  std::vector<uint32_t> endpoint_ports() const;

  Outcome<void> write(const WorkloadRecord&);
  Outcome<void> write(const WorkloadRecord&, const RevisionRecord&);
  Outcome<void> write(const ReplicaRecord&);
  Outcome<void> remove(const ReplicaRecord&);
  // Drops the records of an object that was removed from the database.
  void forget(const std::string& uid);

 private:
  WorkloadJournal* journal_;
  std::map<std::string, WorkloadRecord> workloads_;  // Keyed by uid.
  struct Revision {
    std::string spec;
    objects::ServiceSpec form;
  };
  static Revision revision_of(const RevisionRecord&);
  std::map<std::string, std::map<uint32_t, Revision>> revisions_;         // Keyed by uid and number.
  std::map<std::string, std::map<std::string, ReplicaRecord>> replicas_;  // Keyed by uid and slice.
};

}  // namespace carve::controller
