// The service loop's records, in memory and in controller.db: workloads, revisions and replicas. A record is
// written before it is visible. One thread uses them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/store/controller_store.h"

namespace carve::controller {

inline constexpr unsigned max_kept_revisions = 10;

class WorkloadRecords {
 public:
  static Outcome<WorkloadRecords> read(ControllerStore&);

  // Returns the record of an object; a new one if it has none.
  WorkloadRecord workload(const std::string& uid) const;
  // Returns the spec of a revision; empty if it is not kept.
  std::string spec(const std::string& uid, uint32_t revision) const;
  std::vector<RevisionRecord> revisions(const std::string& uid) const;  // The oldest first.
  std::vector<ReplicaRecord> replicas(const std::string& uid) const;    // By slice name.
  bool has_replica(const std::string& slice) const;
  // Returns all ports that a record has, of programs or of endpoints.
  std::vector<uint32_t> program_ports() const;
  std::vector<uint32_t> endpoint_ports() const;

  Outcome<void> write(const WorkloadRecord&);
  Outcome<void> write(const WorkloadRecord&, const RevisionRecord&);
  Outcome<void> write(const ReplicaRecord&);
  Outcome<void> remove(const ReplicaRecord&);
  // Forgets an object that was removed from the database.
  void forget(const std::string& uid);

 private:
  explicit WorkloadRecords(ControllerStore& store) : store_(&store) {}

  ControllerStore* store_;
  std::map<std::string, WorkloadRecord> workloads_;                       // By uid.
  std::map<std::string, std::map<uint32_t, RevisionRecord>> revisions_;   // By uid and number.
  std::map<std::string, std::map<std::string, ReplicaRecord>> replicas_;  // By uid and slice.
};

}  // namespace carve::controller
