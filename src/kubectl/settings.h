// kubectl carve settings: the cluster's settings, and what has not taken effect yet. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/settings/settings.h"
#include "kubectl/table.h"

namespace carve::kubectl {

struct SettingRow {
  std::string setting, value;
  std::string pending;  // "1GiB -> 128MiB (blocked by a/web-0)"; empty: it is in effect.
};
struct SettingList {
  std::vector<SettingRow> settings;
};

// Reads ConfigMap carve-settings. Fails with every error.
Result<SettingList, api::FieldErrors> setting_rows(std::string_view config_map_json,
                                                   const cluster::PodsInUnits&);
Table table_of(const SettingList&);

}  // namespace carve::kubectl
