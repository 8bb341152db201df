// kubectl carve doctor: reports each part of an installation as deployed, deploying or failed, with the
// reason. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kubernetes/cli/cluster_view.h"
#include "kubernetes/cli/table.h"

namespace carve::kubernetes::cli {

// A JSON response of the API server, or the reason why it is missing.
using Answer = Result<std::string, std::string>;
struct DoctorAnswers {
  Answer version;               // /version
  Answer deployment;            // The coordinator's.
  Answer daemon_set;            // The agent's.
  Answer mutating, validating;  // The webhook configurations.
  Answer policies;              // The list of ValidatingAdmissionPolicyBindings.
  Answer settings;              // ConfigMap carve-settings.
  // The API server's metrics. No value unless a node uses DRA.
  std::optional<Answer> metrics = {};
};

struct DoctorRow {
  std::string component;
  std::string state;   // "Deployed", "Deploying", "Failed"
  std::string reason;  // Empty if deployed.
};
struct DoctorReport {
  std::vector<DoctorRow> components;

  bool has_failed() const;
};
// `view` is null if the nodes cannot be listed.
DoctorReport examine(const DoctorAnswers&, const ClusterView* view);
Table table_of(const DoctorReport&);

}  // namespace carve::kubernetes::cli
