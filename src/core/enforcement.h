// How a slice's limits are enforced. Isolation is what was requested; enforcement is what is in effect, and
// it is always shown. The levels are ordered: each is harder to bypass than the level before it.
#pragma once

#include <string>
#include <vector>

#include "core/words.h"

namespace carve {

enum class EnforcementLevel : uint8_t {
  none = 0,
  library = 1,   // The guest library in the program's process; a hostile program can bypass it.
  kernel = 2,    // The kernel guard.
  driver = 3,    // The driver itself (MPS).
  hardware = 4,  // The device itself (MIG, or a whole device).
};
template <>
struct Words<EnforcementLevel> {
  static constexpr const char* kind = "level of enforcement";
  static constexpr std::string_view words[] = {"none", "library", "kernel", "driver", "hardware"};
};

// Which level `carved --guard` requests for memory limits.
enum class GuardChoice : uint8_t {
  automatic = 0,  // The kernel guard if it is in force, otherwise the guest library.
  kernel = 1,     // The agent does not start without the kernel guard.
  library = 2,
};
template <>
struct Words<GuardChoice> {
  static constexpr const char* kind = "level of the guard";
  static constexpr std::string_view words[] = {"auto", "kernel", "library"};
};

// The enforcement of one dimension, memory or compute, on a device or for a slice.
struct Enforcement {
  EnforcementLevel level = EnforcementLevel::none;
  std::string reason;           // Why the limits are not enforced, or not at a higher level. May be empty.
  std::vector<std::string> by;  // The slices that are the cause.

  bool enforced() const { return level != EnforcementLevel::none; }
  friend bool operator==(const Enforcement&, const Enforcement&) = default;
};

// The level of enforcement by the guest library.
inline constexpr EnforcementLevel enforced_by_guest = EnforcementLevel::library;

// The states that the API shows.
enum class SliceState : uint8_t {
  granted = 0,    // No process has entered it yet.
  running = 1,    // Its program runs.
  lingering = 2,  // Its program has ended, but descendants of the program are still running.
  frozen = 3,     // Frozen by the audit; `carve thaw` resumes it.
  stopping = 4,
  ended = 5,
};
template <>
struct Words<SliceState> {
  static constexpr const char* kind = "state of a slice";
  static constexpr std::string_view words[] = {"granted", "running",  "lingering",
                                               "frozen",  "stopping", "ended"};
};

enum class HealthState : uint8_t {
  ok = 0,
  xid = 1,           // The driver reported an error (Xid).
  unresponsive = 2,  // The driver does not respond.
  lost = 3,          // The device has failed, or is gone.
};
template <>
struct Words<HealthState> {
  static constexpr const char* kind = "state of a device";
  static constexpr std::string_view words[] = {"ok", "xid", "unresponsive", "lost"};
};
struct DeviceHealth {
  HealthState state = HealthState::ok;  // "ok", "xid", "unresponsive", "lost"
  std::string reason;                   // A message. Empty if the state is ok.

  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

enum class CheckStatus : uint8_t { ok = 0, degraded = 1, failed = 2 };
template <>
struct Words<CheckStatus> {
  static constexpr const char* kind = "status of a check";
  static constexpr std::string_view words[] = {"ok", "degraded", "failed"};
};

}  // namespace carve
