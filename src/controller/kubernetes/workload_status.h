// The status of a service or an application on a cluster, from its Deployment and its pods. A pure function.
#pragma once

#include <string>
#include <vector>

#include "controller/objects/object_record.h"
#include "objects/service_object.h"
#include "wire/api/json_value.h"

namespace carve::controller {

// Why the last step for an object failed. Empty if it did not.
struct ClusterProblem {
  std::string reason;  // "FieldConflict"
  std::string message;

  bool empty() const { return reason.empty(); }
  friend bool operator==(const ClusterProblem&, const ClusterProblem&) = default;
};

struct WorkloadView {
  const Object& object;
  const api::Json* deployment = nullptr;    // Null if there is none.
  std::vector<const api::Json*> pods = {};  // In the order of their names.
  uint32_t revision = 0;
  ClusterProblem problem = {};
  std::vector<std::string> warnings = {};
};

// `now_ns` is UTC. The object's present status is the previous one: its conditions keep their time if they have
// not changed.
objects::ServiceStatus workload_status(const WorkloadView&, int64_t now_ns);

// Appends the condition, with its time in `before` if its status has not changed.
void add_condition(std::vector<objects::Condition>& out, const std::vector<objects::Condition>& before,
                   objects::Condition, int64_t now_ns);

// Returns the conditions of an object whose document is invalid, or whose kind the cluster does not run: one
// condition, with its previous time if it has not changed. `before` is the status as JSON.
std::vector<objects::Condition> single_condition(const std::string& before, objects::Condition,
                                                 int64_t now_ns);

}  // namespace carve::controller
