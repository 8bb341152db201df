#include "node/guard/slice_guard.h"

#include <algorithm>

namespace carve::node {
namespace {

Enforcement by_library(std::string reason) { return {enforced_by_guest, std::move(reason), {}}; }

}  // namespace

SliceGuard::SliceGuard(std::string reason, bool is_expected)
    : reason_(std::move(reason)), is_expected_(is_expected) {}

SliceGuard::SliceGuard(std::unique_ptr<MemoryGuard> guard, std::string hook)
    : guard_(std::move(guard)), hook_(std::move(hook)) {}

GuardStatus SliceGuard::status() const {
  if (!guard_) return {.memory = by_library(reason_), .hook = "", .is_expected = is_expected_, .slices = 0};
  const auto is_protected = [](const auto& slice) { return slice.second.level == EnforcementLevel::kernel; };
  return {.memory = {EnforcementLevel::kernel, "", {}},
          .hook = hook_,
          .is_expected = true,
          .slices = static_cast<size_t>(std::ranges::count_if(slices_, is_protected))};
}

Enforcement SliceGuard::protect(const SliceProtection& wanted) {
  if (!guard_) return enforcement_of(wanted.slice);
  Enforcement& out = slices_[wanted.slice];
  out = by_library(wanted.obstacle);
  if (!wanted.obstacle.empty()) return out;
  // The limits first: a process in a known cgroup without limits is refused everything.
  if (const auto set = guard_->set_limits(wanted.slice, wanted.limits, false); !set)
    return out = by_library(set.error().message);
  for (const std::string& cgroup : wanted.cgroups)
    if (const auto added = guard_->add_cgroup(wanted.slice, cgroup); !added)
      return out = by_library(added.error().message);
  return out = {EnforcementLevel::kernel, "", {}};
}

Enforcement SliceGuard::enforcement_of(uint64_t slice) const {
  const auto known = slices_.find(slice);
  return known != slices_.end() ? known->second : by_library(is_expected_ ? "" : reason_);
}

void SliceGuard::forget(uint64_t slice) {
  if (slices_.erase(slice) != 0 && guard_) guard_->remove_slice(slice);
}

void SliceGuard::keep_only(const std::set<uint64_t>& slices) {
  if (!guard_) return;
  for (const uint64_t slice : guard_->slices())
    if (!slices.contains(slice)) guard_->remove_slice(slice);
}

int SliceGuard::findings_fd() const { return guard_ ? guard_->findings_fd() : -1; }

std::vector<guard_finding> SliceGuard::findings() {
  if (!guard_) return {};
  std::vector<guard_finding> out = guard_->findings();
  std::erase_if(out, [this](const guard_finding& finding) { return !slices_.contains(finding.slice); });
  for (const auto& [slice, enforcement] : slices_) {
    if (std::ranges::any_of(
            out, [&](const guard_finding& f) { return f.slice == slice && f.kind == GUARD_BEYOND; }))
      continue;
    const auto usage = guard_->usage(slice);
    if (!usage || !usage->beyond || *usage->beyond >= usage->parts.size()) continue;
    const GuardPartUsage& part = usage->parts[*usage->beyond];
    out.push_back(
        {.slice = slice, .used = part.peak.count, .limit = 0, .part = *usage->beyond, .kind = GUARD_BEYOND});
  }
  return out;
}

std::string SliceGuard::check() {
  if (!guard_) return "";
  const std::string trouble = guard_->trouble();
  if (trouble.empty()) return "";
  reason_ = trouble;
  is_expected_ = false;
  guard_.reset();
  for (auto& [slice, enforcement] : slices_) enforcement = by_library(reason_);
  return reason_;
}

}  // namespace carve::node
