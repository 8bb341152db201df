// A memory guard for tests, which records what it was given. A test holds the state through a shared pointer,
// because the SliceGuard owns the guard.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/guard/memory_guard.h"

namespace carve::node {

class MemoryGuardFake : public MemoryGuard {
 public:
  struct State {
    std::map<uint64_t, std::vector<GuardLimit>> limits;
    std::map<std::string, uint64_t> cgroups;
    std::map<uint64_t, GuardUsage> usage;
    std::vector<guard_finding> findings;
    std::set<std::string> missing_cgroups;
    std::string trouble;
  };
  explicit MemoryGuardFake(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Outcome<void> set_limits(uint64_t slice, const std::vector<GuardLimit>& parts, bool) override {
    state_->limits[slice] = parts;
    return {};
  }
  Outcome<void> add_cgroup(uint64_t slice, const std::string& path) override {
    if (state_->missing_cgroups.contains(path))
      return failure(FailureKind::not_found, "there is no cgroup {}", path);
    state_->cgroups[path] = slice;
    return {};
  }
  void remove_cgroup(const std::string& path) override { state_->cgroups.erase(path); }
  void remove_slice(uint64_t slice) override {
    state_->limits.erase(slice);
    std::erase_if(state_->cgroups, [slice](const auto& known) { return known.second == slice; });
  }
  std::vector<uint64_t> slices() const override {
    std::vector<uint64_t> out;
    for (const auto& [slice, parts] : state_->limits) out.push_back(slice);
    return out;
  }
  std::optional<GuardUsage> usage(uint64_t slice) const override {
    const auto known = state_->usage.find(slice);
    return known == state_->usage.end() ? std::nullopt : std::optional(known->second);
  }
  std::vector<guard_finding> findings() override { return std::exchange(state_->findings, {}); }
  int findings_fd() const override { return -1; }
  std::string trouble() const override { return state_->trouble; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace carve::node
