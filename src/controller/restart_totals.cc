#include "controller/restart_totals.h"

#include "objects/service_object.h"

namespace carve::controller {

void RestartTotals::update(const std::vector<ObjectRegistry::Pointer>& workloads) {
  std::map<std::string, Workload> now;
  for (const auto& object : workloads) {
    const auto before = workloads_.find(object->uid);
    Workload& workload = now[object->uid];
    if (before != workloads_.end()) workload.total = before->second.total;
    for (const objects::ReplicaStatus& replica : object->status.as<objects::ServiceStatus>().replica_list) {
      uint32_t known = began_ ? 0 : replica.restarts;
      if (before != workloads_.end())
        if (const auto found = before->second.restarts.find(replica.slice);
            found != before->second.restarts.end())
          known = found->second;
      workload.restarts[replica.slice] = replica.restarts;
      if (replica.restarts > known) workload.total += replica.restarts - known;
    }
  }
  workloads_ = std::move(now);
  began_ = true;
}

uint64_t RestartTotals::of(const std::string& uid) const {
  const auto found = workloads_.find(uid);
  return found == workloads_.end() ? 0 : found->second.total;
}

}  // namespace carve::controller
