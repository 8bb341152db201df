// kubectl carve doctor: each part of an installation as deployed, deploying or failed, with the reason. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kubectl/cluster_view.h"
#include "kubectl/table.h"

namespace carve::kubectl {

// Answers of the API server, as JSON; a failure: why there is none.
using Answer = Result<std::string, std::string>;
struct DoctorAnswers {
  Answer version;               // /version
  Answer deployment;            // Of the coordinator.
  Answer daemon_set;            // Of the agent.
  Answer mutating, validating;  // The webhook configurations.
  Answer policies;              // The list of ValidatingAdmissionPolicyBindings.
  Answer settings;              // ConfigMap carve-settings.
};

struct DoctorRow {
  std::string component;
  std::string state;   // "Deployed", "Deploying", "Failed"
  std::string reason;  // Empty: there is nothing to say.
};
struct DoctorReport {
  std::vector<DoctorRow> components;

  bool has_failed() const;
};
// `view`: of the nodes; null: they cannot be listed.
DoctorReport examine(const DoctorAnswers&, const ClusterView* view);
Table table_of(const DoctorReport&);

}  // namespace carve::kubectl
