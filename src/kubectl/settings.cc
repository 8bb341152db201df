#include "kubectl/settings.h"

#include "cluster/webhook/settings_review.h"

namespace carve::kubectl {
namespace {

template <class Range, class Text>
std::string listed(const Range& values, Text text_of) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + std::string(text_of(value));
  return out;
}

std::string pending_of(const cluster::ClusterSettings& settings, const cluster::PodsInUnits& pods) {
  const auto change = cluster::pending_unit(settings, pods);
  if (!change || change->desired == change->effective) return "";
  const std::string blockers = listed(change->blocked_by, [](const std::string& pod) { return pod; });
  return fmt::format("{} -> {}{}", text(change->effective), text(change->desired),
                     blockers.empty() ? "" : fmt::format(" (blocked by {})", blockers));
}

}  // namespace

Result<SettingList, api::FieldErrors> setting_rows(std::string_view config_map_json,
                                                   const cluster::PodsInUnits& pods) {
  const auto read = cluster::read_settings_object(config_map_json);
  if (!read) return tl::unexpected(read.error());
  const auto same = [](const std::string& word) { return word; };
  return SettingList{
      {{"gpuMemoryUnit", std::string(text(read->unit)), pending_of(*read, pods)},
       {"dialects", listed(read->dialects, [](fronts::Dialect dialect) { return text(dialect); }), ""},
       {"sharing", read->is_sharing ? "enabled" : "disabled", ""},
       {"plainNvidiaGpu", read->plain_nvidia_is_whole ? "whole" : "ignore", ""},
       {"strategy", std::string(text(read->strategy)), ""},
       {"schedulers", listed(read->schedulers, same), ""},
       {"runtimeClasses", listed(read->runtime_classes, same), ""}}};
}

Table table_of(const SettingList& list) {
  Table out{.headings = {"SETTING", "VALUE", "PENDING"}, .rows = {}};
  for (const SettingRow& row : list.settings) out.rows.push_back({row.setting, row.value, row.pending});
  return out;
}

}  // namespace carve::kubectl
