// What the agent does when a slice breaks its limits: settings of the node.
#pragma once

#include "core/words.h"

namespace carve {

// --audit: the action against a process that uses a device without being attached, and against a slice that
// runs beyond its leases.
enum class AuditAction : uint8_t {
  report = 0,  // Only an event.
  freeze = 1,  // The slice is frozen until carve thaw.
  kill = 2,    // The process is killed; a slice beyond its leases is stopped.
};
template <>
struct Words<AuditAction> {
  static constexpr const char* kind = "action of the audit";
  static constexpr std::string_view words[] = {"report", "freeze", "kill"};
};

// --over-quota: the action if growth takes a slice beyond its quota.
enum class OverQuotaAction : uint8_t {
  report = 0,  // Growth is not charged: the slice may still allocate what its own calls have not used.
  refuse = 1,  // No allocation succeeds until the slice is below its quota again.
  kill = 2,    // The slice is stopped.
};
template <>
struct Words<OverQuotaAction> {
  static constexpr const char* kind = "action beyond the quota";
  static constexpr std::string_view words[] = {"report", "refuse", "kill"};
};

}  // namespace carve
