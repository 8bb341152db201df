// A setting that takes effect later: the desired value, the effective value, and what blocks the change.
//
// A holder of the old value keeps it; it is neither restarted nor changed while it runs. The new value takes
// effect as soon as the old one has no holder: immediately, at the end of the last holder, or at a start of
// the agent that finds no live holder. There is no other way from `desired` to `effective`. So a reader sees
// one of two states: the two are equal, or they differ and `blocked_by` names the holders.
//
// The rule applies to all such settings (a device's compute policy, later its memory unit or a service's
// update). This is a value type; the caller stores it and decides what counts as a holder.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace carve {

template <class Value>
struct Setting {
  Value desired{};
  Value effective{};
  std::vector<std::string> blocked_by;  // Names. Empty if both values are equal.

  bool pending() const { return !(desired == effective); }

  friend bool operator==(const Setting&, const Setting&) = default;
};

// Returns the setting with the current holders of the effective value. Call it when a holder starts or ends,
// and once after a start.
template <class Value>
Setting<Value> settled(Setting<Value> setting, std::vector<std::string> holders) {
  if (holders.empty()) setting.effective = setting.desired;
  setting.blocked_by = setting.pending() ? std::move(holders) : std::vector<std::string>{};
  return setting;
}

// Returns the setting with a new desired value. Setting the effective value as the desired one cancels an
// earlier change.
template <class Value>
Setting<Value> wanted(Setting<Value> setting, Value value, std::vector<std::string> holders) {
  setting.desired = std::move(value);
  return settled(std::move(setting), std::move(holders));
}

}  // namespace carve
