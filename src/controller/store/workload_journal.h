// The destination of the service reconciler's records. Each call is one transaction.
#pragma once

#include "controller/store/stored_records.h"
#include "core/failure.h"

namespace carve::controller {

class WorkloadJournal {
 public:
  virtual ~WorkloadJournal() = default;
  // Writes the record with its revision, and deletes all revisions except the newest `kept` and those of
  // replicas.
  virtual Outcome<void> write(const WorkloadRecord&, const RevisionRecord&, unsigned kept) = 0;
  virtual Outcome<void> write(const WorkloadRecord&) = 0;
  virtual Outcome<void> write(const ReplicaRecord&) = 0;
  virtual Outcome<void> remove(const ReplicaRecord&) = 0;
};

}  // namespace carve::controller
