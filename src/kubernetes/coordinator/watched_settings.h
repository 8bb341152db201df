// ConfigMap carve-settings, read when a watch shows a change, and every 5 s in case the watch is silent.
// Settings that cannot be read have no effect: the last good ones stay, and the problem is shown.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/watched_objects.h"
#include "kubernetes/coordinator/settings/settings.h"

namespace carve::kubernetes::coordinator {

inline constexpr kubernetes::Nanoseconds settings_interval_ns = 5 * kubernetes::second_ns;

class WatchedSettings {
 public:
  // Starts immediately. `changed` is called when different settings are read, also the first time.
  WatchedSettings(kubernetes::ApiClient&, const std::string& name_space, std::function<void()> changed,
                  uint64_t seed);

  const std::optional<ClusterSettings>& now() const { return settings_; }  // No value before the first one.
  const std::string& problem() const { return problem_; }  // Why the last reading failed, or empty.

  // Writes the state of gpuMemoryUnitWhenFree: the change, or the pods for which it waits. Called only by the
  // active coordinator. `pods` visits all pods; it is called only if a change is requested.
  void settle_unit(const std::function<PodsInUnits()>& pods);

  // Writes the effective settings into the ConfigMap, unless they are there already. Called only by the
  // active coordinator. `used` is the strategy with which its cache was made.
  void mark_effective(Strategy used);

 private:
  void patch(const std::string& body);
  void poll();
  void read();
  void answered(const kubernetes::ApiAnswer&);

  kubernetes::ApiClient& client_;
  const std::string path_;
  const std::function<void()> changed_;
  std::optional<ClusterSettings> settings_;
  std::string problem_ = "the settings have not been read";
  std::string pending_, effective_;  // As in the ConfigMap's annotations.
  bool is_stale_ = false;            // Changed while it was being read.
  std::unique_ptr<kubernetes::ApiCall> call_, timer_, write_;
  std::optional<kubernetes::ObjectWatch> watch_;  // Last: it calls the others.
};

}  // namespace carve::kubernetes::coordinator
