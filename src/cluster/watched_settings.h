// ConfigMap carve-settings, read every 5 s. Settings that cannot be read have no effect: the last good ones
// stay, and the problem is shown.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/settings/settings.h"
#include "kube/api_client.h"

namespace carve::cluster {

inline constexpr kube::Nanoseconds settings_interval_ns = 5 * kube::second_ns;

class WatchedSettings {
 public:
  // Begins at once. `changed` is called when other settings than before are read, the first ones included.
  WatchedSettings(kube::ApiClient&, std::string name_space, std::function<void()> changed);

  const std::optional<ClusterSettings>& now() const { return settings_; }  // None: not read yet.
  const std::string& problem() const { return problem_; }  // Of the last reading; empty: none.

  // Writes what becomes of gpuMemoryUnitWhenFree: the change, or for which pods it waits. Called by the
  // active coordinator alone. `pods` goes over all pods; it is called only if a change is asked for.
  void settle_unit(const std::function<PodsInUnits()>& pods);

 private:
  void poll();
  void answered(const kube::ApiAnswer&);

  kube::ApiClient& client_;
  const std::string path_;
  const std::function<void()> changed_;
  std::optional<ClusterSettings> settings_;
  std::string problem_ = "the settings have not been read";
  std::string pending_;  // As the ConfigMap's annotation has it.
  std::unique_ptr<kube::ApiCall> call_, timer_, write_;
};

}  // namespace carve::cluster
