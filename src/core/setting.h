// A setting that takes effect later. It has a desired value, an effective value, and a list of what blocks
// the change.
//
// A holder of the old value keeps it; it is neither restarted nor changed while it runs. The new value takes
// effect as soon as the old value has no holder: immediately, when the last holder ends, or when the agent
// starts and finds no live holder. So a reader always sees one of two states: both values are equal, or they
// differ and `blocked_by` names the holders.
//
// The rule applies to all settings of this kind, such as a device's compute policy. This is a value type; the
// caller stores it and decides what counts as a holder.
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

// Returns the setting with the current holders of the effective value. Must be called when a holder starts or
// ends, and once after the agent has started.
template <class Value>
Setting<Value> settled(Setting<Value> setting, std::vector<std::string> holders) {
  if (holders.empty()) setting.effective = setting.desired;
  setting.blocked_by = setting.pending() ? std::move(holders) : std::vector<std::string>{};
  return setting;
}

// Returns the setting with a new desired value. Setting the effective value as the desired value cancels an
// earlier change.
template <class Value>
Setting<Value> wanted(Setting<Value> setting, Value value, std::vector<std::string> holders) {
  setting.desired = std::move(value);
  return settled(std::move(setting), std::move(holders));
}

}  // namespace carve
