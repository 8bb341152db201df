#include "cli/sentences.h"

#include <fmt/ranges.h>

namespace carve::cli {

std::string sentence(const Enforcement& e) {
  if (e.enforced()) return std::string(text(e.level));
  std::string out = "not enforced";
  if (!e.reason.empty()) out += ": " + e.reason;
  if (!e.by.empty()) out += fmt::format(": {}", fmt::join(e.by, ", "));
  return out;
}

std::string isolation_column(const api::Slice& slice) {
  if (slice.exclusive) return "exclusive";
  const bool shared = slice.isolation == Isolation::memory_and_compute;
  if (shared && !slice.enforcement.compute.enforced()) return "memory only";
  return std::string(text(slice.isolation));
}

std::string sentence(const DeviceHealth& health) {
  if (health.reason.empty()) return std::string(text(health.state));
  return fmt::format("{}: {}", text(health.state), health.reason);
}

}  // namespace carve::cli
