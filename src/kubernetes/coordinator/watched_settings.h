// ConfigMap carve-settings, which is read when a watch shows a change, and every 5 s in case the watch is
// silent. Unreadable settings have no effect: the last valid ones are kept, and the problem is reported.
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
  // Starts immediately. `changed` is called whenever different settings are read, including the first time.
  WatchedSettings(kubernetes::ApiClient&, const std::string& name_space, std::function<void()> changed,
                  uint64_t seed);

  const std::optional<ClusterSettings>& now() const { return settings_; }  // No value before the first read.
  const std::string& problem() const { return problem_; }  // Why the last read failed; empty if it did not.

  // Writes the state of gpuMemoryUnitWhenFree: either the change, or the pods for which it waits. Called only
  // by the active coordinator. `pods` lists the pods that request memory in units; it is called only if a
  // change is requested.
  void settle_unit(const std::function<PodsInUnits()>& pods);

  // Writes the effective settings into the ConfigMap unless they are already there. Called only by the active
  // coordinator. `used` is the strategy with which its cache was built.
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
  std::optional<kubernetes::ObjectWatch> watch_;  // Declared last, because it calls the others.
};

}  // namespace carve::kubernetes::coordinator
