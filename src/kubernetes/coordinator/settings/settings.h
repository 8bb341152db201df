// The cluster's settings: the keys of ConfigMap carve-settings. Parsing is strict, so a misspelt key is
// rejected with a message. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/slice.h"
#include "dialects/pod/pod_settings.h"
#include "wire/api/field_error.h"

namespace carve::kubernetes::coordinator {

inline constexpr const char* settings_name = "carve-settings";
// Annotation of the ConfigMap that contains the settings that have not taken effect yet.
inline constexpr const char* settings_annotation = "carve.dev/settings";

// The member `data` of a ConfigMap.
using SettingsData = std::map<std::string, std::string>;

struct ClusterSettings {
  MemoryUnit unit = MemoryUnit::gib;    // gpuMemoryUnit
  std::optional<MemoryUnit> when_free;  // gpuMemoryUnitWhenFree: used once no pod uses the current unit.
  std::set<dialects::Dialect> dialects{dialects::Dialect::carve, dialects::Dialect::ack,
                                       dialects::Dialect::vke, dialects::Dialect::hami};
  bool is_sharing = true;              // sharing; overridden by a namespace's label.
  bool plain_nvidia_is_whole = false;  // plainNvidiaGpu
  bool init_containers_share = false;  // initContainers
  Strategy strategy = Strategy::binpack;
  std::vector<std::string> schedulers{"carve-scheduler"};
  std::vector<std::string> runtime_classes;  // runtimeClasses

  friend bool operator==(const ClusterSettings&, const ClusterSettings&) = default;
};

// Parses the settings. A missing key gets its default. Fails with every error.
Result<ClusterSettings, api::FieldErrors> read_settings(const SettingsData&);

// Returns the settings that the admission of pods needs. `models` are the device models in the cluster.
dialects::PodSettings pod_settings(const ClusterSettings&, std::vector<std::string> models);

// Annotation of the ConfigMap that contains the settings that the active coordinator uses, as a JSON object
// of texts.
inline constexpr const char* effective_annotation = "carve.dev/effective-settings";
// Returns the text of each setting by its key, as in the ConfigMap.
std::map<std::string, std::string> setting_texts(const ClusterSettings&);

// Pods that requested memory in units, as NAMESPACE/NAME, by the unit's size in bytes.
using PodsInUnits = std::map<uint64_t, std::vector<std::string>>;

// Returns why a change of the settings is rejected. Empty if it is allowed.
api::FieldErrors refuse_change(const ClusterSettings& before, const ClusterSettings& after,
                               const PodsInUnits&);

// The pending change to gpuMemoryUnitWhenFree.
struct UnitChange {
  MemoryUnit effective, desired;
  std::vector<std::string> blocked_by;  // Pods that use the current unit; if empty, the change is due.
};
std::optional<UnitChange> pending_unit(const ClusterSettings&, const PodsInUnits&);

// Returns the text of settings_annotation:
// {"v":1,"gpuMemoryUnit":{"desired":"128MiB","effective":"1GiB","blocked_by":["a/web-0"]}}
std::string pending_text(const UnitChange&);

}  // namespace carve::kubernetes::coordinator
