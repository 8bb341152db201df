// Two settings of the node that can be changed while the agent runs and that survive a restart: the memory
// unit, and the message that rejects new slices while an operator wants none. They are stored in
// STATE/settings.json.
//
// The bytes of a slice that was requested in units do not change, so such slices block a change of the node's
// unit (core/setting.h).
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
  // Reads the stored settings. `given` is the unit on the command line. If it is absent, the stored unit
  // applies, or 1GiB if none is stored. Fails if the file cannot be read.
  static Outcome<KeptSettings> open(const std::string& path, std::optional<MemoryUnit> given);

  // Sets the desired unit. `holders` are the slices that were requested in units. If this fails, nothing is
  // changed.
  Outcome<void> want(MemoryUnit, const std::vector<std::string>& holders);
  // Must be called after a slice was adopted or has ended. Returns true if the desired unit became effective.
  bool settle(const std::vector<std::string>& holders);
  // Rejects new slices with the message; an empty message allows them again.
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
