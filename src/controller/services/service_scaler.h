// Decides how many replicas the services with spec.autoscale get (workload/autoscale.h). spec.replicas stays
// as it was written; it is the number of the first decision. The present number is status.desiredReplicas,
// with which a new controller continues.
#pragma once

#include <map>
#include <string>

#include "controller/services/service_status.h"
#include "workload/autoscale.h"

namespace carve::controller {

// What is known of one service in one turn.
struct ScaleInput {
  const objects::ServiceSpec& spec;  // With autoscale.
  uint32_t before = 0;               // status.desiredReplicas; 0: none yet.
  const workload::ServiceObserved& observed;
  const std::vector<ReplicaRecord>& replicas;          // In the order of observed.replicas.
  const std::map<std::string, ObservedSlice>& slices;  // By name.
  std::optional<EndpointLoad> load;
  const SliceRefusal* refusal = nullptr;  // Null: none.
};

class ServiceScaler {
 public:
  // Returns the decision for the service with this uid. Its sentence changes with the decision, or after 15
  // s.
  workload::AutoscaleDecision decide(const std::string& uid, const ScaleInput&, Ns now);

  void forget(const std::string& uid) { services_.erase(uid); }

 private:
  struct Scaled {
    workload::Autoscaler scaler;
    workload::LoadWindow load;
    std::optional<workload::AutoscaleDecision> shown = {};
    Ns shown_at = 0;
  };
  std::map<std::string, Scaled> services_;  // By uid.
};

}  // namespace carve::controller
