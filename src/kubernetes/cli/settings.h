// kubectl carve settings: the cluster's settings, and the changes that have not taken effect yet. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/cli/table.h"
#include "kubernetes/coordinator/settings/settings.h"

namespace carve::kubernetes::cli {

struct SettingRow {
  std::string setting, value;
  std::string pending;  // "1GiB -> 128MiB (blocked by a/web-0)"; empty if it is in effect.
};
struct SettingList {
  std::vector<SettingRow> settings;
};

// Parses the ConfigMap carve-settings. Fails with every error.
Result<SettingList, api::FieldErrors> setting_rows(std::string_view config_map_json,
                                                   const coordinator::PodsInUnits&);
Table table_of(const SettingList&);

// Returns the memory unit that the coordinator uses, or no value if the ConfigMap cannot be read.
std::optional<MemoryUnit> unit_in_effect(std::string_view config_map_json);

}  // namespace carve::kubernetes::cli
