#include "cli/messages.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/terminal.h"

namespace carve::cli {

std::string enforcement_text(const Enforcement& memory) {
  return fmt::format("{}{}{}", text(memory.level),
                     memory.reason.empty() ? "" : "; no kernel guard: ", harmless(memory.reason));
}

std::string message(const Enforcement& e) {
  if (e.enforced()) return std::string(text(e.level));
  std::string out = "not enforced";
  if (!e.reason.empty()) out += ": " + e.reason;
  if (!e.by.empty()) out += fmt::format(": {}", fmt::join(e.by, ", "));
  return out;
}

std::string isolation_column(const api::Slice& slice) {
  if (slice.exclusive) return "exclusive";
  const bool shared = slice.isolation == Isolation::memory_and_compute;
  // An ended slice has no limits in force, so the column shows the requested isolation.
  if (shared && slice.state != SliceState::ended && !slice.enforcement.compute.enforced())
    return "memory only";
  return std::string(text(slice.isolation));
}

bool has_equal_parts(const api::Slice& slice) {
  return std::ranges::all_of(slice.parts, [&](const api::SlicePart& part) {
    return part.quota_bytes == slice.parts.front().quota_bytes &&
           part.share_bp == slice.parts.front().share_bp;
  });
}

std::string quotas_text(const api::Slice& slice) {
  std::vector<std::string> out;
  for (const api::SlicePart& part : slice.parts) out.emplace_back(text(Bytes{part.quota_bytes}));
  if (has_equal_parts(slice)) out.resize(std::min<size_t>(out.size(), 1));
  return fmt::format("{}", fmt::join(out, ","));
}

std::string shares_text(const api::Slice& slice) {
  std::vector<std::string> out;
  for (const api::SlicePart& part : slice.parts)
    out.push_back(part.share_bp == 0 ? "-" : text(Share{part.share_bp}).c_str());
  if (has_equal_parts(slice)) out.resize(std::min<size_t>(out.size(), 1));
  return out.empty() ? "-" : fmt::format("{}", fmt::join(out, ","));
}

std::string message(const DeviceHealth& health) {
  if (health.reason.empty()) return std::string(text(health.state));
  return fmt::format("{}: {}", text(health.state), health.reason);
}

std::string workload_problem(const api::Slice& slice) {
  const auto label = [&](const char* key) {
    const auto found = slice.labels.find(key);
    return found == slice.labels.end() ? "" : harmless(found->second);
  };
  const std::string kind = label("carve.dev/kind"), name = label("carve.dev/name");
  if (kind.empty() || name.empty()) return "";
  const std::string way = kind == "service" || kind == "application"
                              ? fmt::format("change {}/{} with carve apply or carve eas modify", kind, name)
                              : fmt::format("{}/{} keeps the size that it was submitted with", kind, name);
  return fmt::format(
      "slice {} belongs to {}/{}, which would still show the old size; {}. --force changes only this slice "
      "and only until its next start",
      slice.name, kind, name, way);
}

}  // namespace carve::cli
