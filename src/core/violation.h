// Ways in which slices violate their limits, and how the agent responds, which are settings of the node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/words.h"

namespace carve {

// --audit: the action taken against a process that uses a device without being attached or outside of its
// slice, and against a slice that runs beyond its leases.
enum class AuditAction : uint8_t {
  report = 0,  // Only an event.
  freeze = 1,  // The slice is frozen until `carve thaw`.
  kill = 2,    // The process is killed; a slice beyond its leases is stopped.
};
template <>
struct Words<AuditAction> {
  static constexpr const char* kind = "action of the audit";
  static constexpr std::string_view words[] = {"report", "freeze", "kill"};
};

// --over-quota: the action taken if growth takes a slice beyond its quota. A call that would exceed the quota
// is refused in any case.
enum class OverQuotaAction : uint8_t {
  report = 0,  // Growth is not charged: the slice may allocate whatever its own calls have left.
  refuse = 1,  // No allocation succeeds until the slice is below its quota again.
  kill = 2,    // The slice is stopped, even if a call was refused and its program handles the error.
};
template <>
struct Words<OverQuotaAction> {
  static constexpr const char* kind = "action beyond the quota";
  static constexpr std::string_view words[] = {"report", "refuse", "kill"};
};

enum class ViolationKind : uint8_t {
  over_quota = 0,          // The driver reports more of the slice's memory than its quota.
  bypass = 1,              // A process uses a device unattached, beyond its leases, or outside of its slice.
  foreign_process = 2,     // A process of another container or pod tried to attach to the slice.
  unreadable_process = 3,  // A process blocks reads of its files in /proc.
  false_report = 4,        // Its report page claims work that the driver does not confirm.
};
template <>
struct Words<ViolationKind> {
  static constexpr const char* kind = "kind of violation";
  static constexpr std::string_view words[] = {"over-quota", "bypass", "foreign-process",
                                               "unreadable-process", "false-report"};
};

// The number of violations of one kind by a slice, and the newest of them as a message.
struct Violation {
  ViolationKind kind = ViolationKind::over_quota;
  uint64_t count = 0;
  std::string text;

  friend bool operator==(const Violation&, const Violation&) = default;
};

// The violations of one slice, by kind.
class Violations {
 public:
  void add(ViolationKind kind, std::string text) {
    Violation& found =
        by_kind_.try_emplace(kind, Violation{.kind = kind, .count = 0, .text = ""}).first->second;
    ++found.count;
    found.text = std::move(text);
  }
  std::vector<Violation> list() const {
    std::vector<Violation> out;
    for (const auto& [kind, violation] : by_kind_) out.push_back(violation);
    return out;
  }

 private:
  std::map<ViolationKind, Violation> by_kind_;
};

}  // namespace carve
