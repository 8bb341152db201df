// The cluster's settings: the keys of ConfigMap carve-settings. They are read strictly, so a key that is
// misspelt changes nothing without a sentence. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/slice.h"
#include "fronts/pod/pod_settings.h"
#include "wire/api/field_error.h"

namespace carve::cluster {

inline constexpr const char* settings_name = "carve-settings";
// Of the ConfigMap: what has not taken effect yet.
inline constexpr const char* settings_annotation = "carve.dev/settings";

// The member `data` of a ConfigMap.
using SettingsData = std::map<std::string, std::string>;

struct ClusterSettings {
  MemoryUnit unit = MemoryUnit::gib;    // gpuMemoryUnit
  std::optional<MemoryUnit> when_free;  // gpuMemoryUnitWhenFree: the unit once no pod has the present one.
  std::set<fronts::Dialect> dialects{fronts::Dialect::carve, fronts::Dialect::ack, fronts::Dialect::vke,
                                     fronts::Dialect::hami};
  bool is_sharing = true;              // sharing; a namespace's label overrides it.
  bool plain_nvidia_is_whole = false;  // plainNvidiaGpu
  bool init_containers_share = false;  // initContainers
  Strategy strategy = Strategy::binpack;
  std::vector<std::string> schedulers{"carve-scheduler"};
  std::vector<std::string> runtime_classes;  // runtimeClasses

  friend bool operator==(const ClusterSettings&, const ClusterSettings&) = default;
};

// Reads the settings; an absent key has its default. Fails with every error.
Result<ClusterSettings, api::FieldErrors> read_settings(const SettingsData&);

// Returns what the admission of pods takes of them. `models`: those that the cluster's nodes have.
fronts::PodSettings pod_settings(const ClusterSettings&, std::vector<std::string> models);

// Pods that were asked for in units, by the unit's bytes: NAMESPACE/NAME.
using PodsInUnits = std::map<uint64_t, std::vector<std::string>>;

// Returns why a change of the settings is refused; empty: it is not.
api::FieldErrors refuse_change(const ClusterSettings& before, const ClusterSettings& after,
                               const PodsInUnits&);

// What becomes of gpuMemoryUnitWhenFree now.
struct UnitChange {
  MemoryUnit effective, desired;
  std::vector<std::string> blocked_by;  // Pods in the present unit; none: the change is due.
};
std::optional<UnitChange> pending_unit(const ClusterSettings&, const PodsInUnits&);

// Returns the text of settings_annotation:
// {"v":1,"gpuMemoryUnit":{"desired":"128MiB","effective":"1GiB","blocked_by":["a/web-0"]}}
std::string pending_text(const UnitChange&);

}  // namespace carve::cluster
