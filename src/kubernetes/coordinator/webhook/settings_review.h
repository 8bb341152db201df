// The validating webhook for ConfigMap carve-settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kubernetes/coordinator/settings/settings.h"

namespace carve::kubernetes::coordinator {

// Which scheduler calls the coordinator: Carve's own, or the cluster's (--lease).
enum class SchedulerBeside : uint8_t { own, of_cluster };

// Returns the response to a review of the settings. Deletions are allowed. Fails with a message if the text
// is not a review.
Result<std::string, std::string> review_settings(std::string_view json, const PodsInUnits&, SchedulerBeside);

// Parses the settings in a ConfigMap's JSON text. Fails with every error.
Result<ClusterSettings, api::FieldErrors> read_settings_object(std::string_view json);

}  // namespace carve::kubernetes::coordinator
