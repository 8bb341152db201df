// The validating webhook of ConfigMap carve-settings.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/settings/settings.h"

namespace carve::cluster {

// Returns the answer to a review of the settings; a deletion is allowed. Fails with a sentence if the text is
// no review.
Result<std::string, std::string> review_settings(std::string_view json, const PodsInUnits&);

// Reads the settings of a ConfigMap's JSON text. Fails with every error.
Result<ClusterSettings, api::FieldErrors> read_settings_object(std::string_view json);

}  // namespace carve::cluster
