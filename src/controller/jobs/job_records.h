// The job reconciler's records, in memory and in controller.db. A record is stored before it is visible. Used
// by one thread.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/store/controller_store.h"

namespace carve::controller {

// Returns how many workers of each group a cluster may have now: the admitted number, but at most the desired
// number.
std::vector<uint32_t> admitted_workers(const JobRecord&, const std::vector<uint32_t>& wanted);
std::string workers_text(const std::vector<uint32_t>& workers);

class JobRecords {
 public:
  static Outcome<JobRecords> read(ControllerStore&);

  // Returns the job's record, or a new one if it has none.
  JobRecord job(const std::string& uid) const;
  // Returns null if the job has no record. The record is valid until the next write.
  const JobRecord* find(const std::string& uid) const;
  std::vector<PodRecord> pods(const std::string& uid) const;  // Ordered by name.
  bool has_pods(const std::string& uid) const;
  bool has_pod(const std::string& program) const;
  std::vector<uint32_t> ports() const;

  Outcome<void> write(const JobRecord&);
  Outcome<void> write(const PodRecord&);
  Outcome<void> remove(const PodRecord&);
  // Drops the records of a job that was removed from the database.
  void forget(const std::string& uid);

 private:
  explicit JobRecords(ControllerStore& store) : store_(&store) {}

  ControllerStore* store_;
  std::unordered_map<std::string, JobRecord> jobs_;                         // Keyed by uid.
  std::unordered_map<std::string, std::map<std::string, PodRecord>> pods_;  // Keyed by uid and name.
};

}  // namespace carve::controller
