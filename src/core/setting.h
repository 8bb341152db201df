// A setting that takes effect later: what is wanted, what holds, and who stands between the two.
//
// Whoever runs under the old value keeps it; nobody is restarted or changed under way. The new value takes
// effect at the first moment at which nobody holds the old one: at once where nobody does, when the last of
// them has left, or at a start of the agent that finds none of them alive. There is no other way from
// `desired` to `effective`, so a person who looks sees one of two things: the two agree, or they differ and
// `blocked_by` says whom to wait for.
//
// One rule for all such settings (a device's compute policy, and later its memory unit or a service's
// update), as a value: what it is kept in, and who counts as a holder, is the caller's business.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace carve {

template <class Value>
struct Setting {
  Value desired{};
  Value effective{};
  std::vector<std::string> blocked_by;  // Names; empty where the two agree.

  bool pending() const { return !(desired == effective); }

  friend bool operator==(const Setting&, const Setting&) = default;
};

// The setting, now that `holders` are those who run under the effective value. Say it whenever one of them
// comes or goes, and once after a start.
template <class Value>
Setting<Value> settled(Setting<Value> setting, std::vector<std::string> holders) {
  if (holders.empty()) setting.effective = setting.desired;
  setting.blocked_by = setting.pending() ? std::move(holders) : std::vector<std::string>{};
  return setting;
}

// The setting, now that somebody wants `value`. Wanting what is effective takes an earlier wish back.
template <class Value>
Setting<Value> wanted(Setting<Value> setting, Value value, std::vector<std::string> holders) {
  setting.desired = std::move(value);
  return settled(std::move(setting), std::move(holders));
}

}  // namespace carve
