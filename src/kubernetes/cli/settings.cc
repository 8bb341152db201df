#include "kubernetes/cli/settings.h"

#include "kubernetes/api/answers.h"
#include "kubernetes/coordinator/webhook/settings_review.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

template <class Range, class Text>
std::string listed(const Range& values, Text text_of) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + std::string(text_of(value));
  return out;
}

std::string pending_of(const coordinator::ClusterSettings& settings, const coordinator::PodsInUnits& pods) {
  const auto change = coordinator::pending_unit(settings, pods);
  if (!change || change->desired == change->effective) return "";
  const std::string blockers = listed(change->blocked_by, [](const std::string& pod) { return pod; });
  return fmt::format("{} -> {}{}", text(change->effective), text(change->desired),
                     blockers.empty() ? "" : fmt::format(" (blocked by {})", blockers));
}

// Returns the settings in effect, which the active coordinator writes. Empty if no coordinator has written
// them.
std::map<std::string, std::string> effective_texts(std::string_view config_map_json) {
  std::map<std::string, std::string> out;
  const auto object = kubernetes::read_object(config_map_json);
  if (!object) return out;
  const auto annotation = object->annotations.find(coordinator::effective_annotation);
  if (annotation == object->annotations.end()) return out;
  const auto texts = api::parse(annotation->second);
  if (!texts || !texts->is_object()) return out;
  for (const auto& [key, value] : texts->items())
    if (value.is_string()) out[key] = value.get<std::string>();
  return out;
}

}  // namespace

Result<SettingList, api::FieldErrors> setting_rows(std::string_view config_map_json,
                                                   const coordinator::PodsInUnits& pods) {
  const auto read = coordinator::read_settings_object(config_map_json);
  if (!read) return tl::unexpected(read.error());
  const std::map<std::string, std::string> wanted = coordinator::setting_texts(*read),
                                           effective = effective_texts(config_map_json);
  SettingList out;
  for (const char* key : {"gpuMemoryUnit", "gpuMemoryUnitWhenFree", "dialects", "sharing", "plainNvidiaGpu",
                          "initContainers", "strategy", "schedulers", "runtimeClasses"}) {
    SettingRow row{.setting = key, .value = wanted.at(key), .pending = ""};
    if (const auto used = effective.find(key); used != effective.end() && used->second != row.value) {
      row.pending = fmt::format("{} -> {} ({})", used->second, row.value,
                                row.setting == "strategy" ? "when the coordinator is restarted"
                                                          : "not yet read by the coordinator");
      row.value = used->second;
    }
    out.settings.push_back(std::move(row));
  }
  if (out.settings.front().pending.empty()) out.settings.front().pending = pending_of(*read, pods);
  return out;
}

std::optional<MemoryUnit> unit_in_effect(std::string_view config_map_json) {
  const auto effective = effective_texts(config_map_json);
  if (const auto unit = effective.find("gpuMemoryUnit"); unit != effective.end())
    return parse<MemoryUnit>(unit->second);
  const auto read = coordinator::read_settings_object(config_map_json);
  return read ? std::optional(read->unit) : std::nullopt;
}

Table table_of(const SettingList& list) {
  Table out{.headings = {"SETTING", "VALUE", "PENDING"}, .rows = {}};
  for (const SettingRow& row : list.settings) out.rows.push_back({row.setting, row.value, row.pending});
  return out;
}

}  // namespace carve::kubernetes::cli
