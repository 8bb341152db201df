// Decides how many replicas services with spec.autoscale get (workload/autoscale.h). spec.replicas keeps its
// written value, with which the first decision begins. The current number is status.desiredReplicas, from
// which a new controller continues.
#pragma once

#include <map>
#include <string>

#include "controller/services/service_status.h"
#include "workload/autoscale.h"

namespace carve::controller {

// The inputs of a decision for one service in one turn.
struct ScaleInput {
  const objects::ServiceSpec& spec;  // Must contain autoscale.
  uint32_t before = 0;               // Value of status.desiredReplicas; 0 before the first decision.
  const workload::ServiceObserved& observed;
  const std::vector<ReplicaRecord>& replicas;          // In the order of observed.replicas.
  const std::map<std::string, ObservedSlice>& slices;  // Keyed by name.
  std::optional<EndpointLoad> load;
  const SliceRefusal* refusal = nullptr;  // The last rejected slice, or null.
};

class ServiceScaler {
 public:
  // Returns the decision for the service with this uid. Its message is updated with the decision, or after 15
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
  std::map<std::string, Scaled> services_;  // Keyed by uid.
};

}  // namespace carve::controller
