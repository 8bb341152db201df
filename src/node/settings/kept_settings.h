// Two settings of the node that a running agent can change and that survive a restart: the memory unit, and
// the message that refuses new slices while an operator wants none. They are stored in STATE/settings.json.
//
// A slice that was requested in units keeps its bytes, so its unit holds the node's unit (core/setting.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "core/setting.h"
#include "core/slice.h"

namespace carve::node {

class KeptSettings {
 public:
  // Reads the stored settings. `given` is the unit of the command line; without it the stored unit applies,
  // else 1GiB. Fails if the file cannot be read.
  static Outcome<KeptSettings> open(const std::string& path, std::optional<MemoryUnit> given);

  // Sets the desired unit. `holders` are the slices that were requested in units. On failure nothing is
  // changed.
  Outcome<void> want(MemoryUnit, const std::vector<std::string>& holders);
  // Called after a slice was adopted or has ended. Returns true if the desired unit became effective.
  bool settle(const std::vector<std::string>& holders);
  // Refuses new slices with the message; an empty one allows them again.
  Outcome<void> refuse_grants(const std::string& message);

  const Setting<MemoryUnit>& memory_unit() const { return unit_; }
  const std::string& grants_refused() const { return grants_refused_; }

 private:
  Outcome<void> keep(const Setting<MemoryUnit>&, const std::string& grants_refused);

  std::string path_;
  Setting<MemoryUnit> unit_;
  std::string grants_refused_;
};

}  // namespace carve::node
