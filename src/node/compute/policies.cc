#include "node/compute/policies.h"

#include "os/directory.h"
#include "os/log.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

struct Kept {
  std::string boot_id;
  std::string desired;
  std::map<std::string, std::string> effective;  // Keyed by the device's UUID.
};

}  // namespace

Outcome<void> Policies::keep(Policy desired, const std::map<Uuid, Setting<Policy>>& devices) const {
  Kept kept;
  kept.boot_id = boot_id_;
  kept.desired = text(desired);
  for (const auto& [uuid, setting] : devices) kept.effective[text(uuid)] = text(setting.effective);
  return os::replace_file(path_, api::write(kept) + "\n");
}

Policies::Opened Policies::open(const Start& start) {
  Opened out;
  path_ = start.path;
  boot_id_ = start.boot_id;
  Kept kept;
  if (const auto text = os::read_file(path_)) {
    if (auto read = api::read<Kept>(*text, api::Reading::lenient))
      kept = std::move(*read);
    else
      out.trouble = fmt::format("{} was unreadable and has been replaced: {}", path_, read.error());
  }
  desired_ = start.said.value_or(parse<Policy>(kept.desired).value_or(Policy::fixed_share));
  bool pending = false;
  for (const Uuid& uuid : start.devices) {
    const auto known = kept.effective.find(text(uuid));
    const auto before = known == kept.effective.end() ? std::nullopt : parse<Policy>(known->second);
    const Policy effective = before ? *before : start.otherwise(uuid).value_or(desired_);
    devices_[uuid] = settled(Setting<Policy>{desired_, effective, {}}, start.holders(uuid));
    pending |= devices_[uuid].pending();
  }
  const bool new_boot = !kept.boot_id.empty() && kept.boot_id != boot_id_;
  out.booted = new_boot && pending && start.may_follow(desired_);
  if (out.booted)
    for (auto& [uuid, setting] : devices_) setting = {desired_, desired_, {}};
  if (const auto good = keep(desired_, devices_); !good) out.trouble = good.error().message;
  return out;
}

Outcome<void> Policies::want(Policy policy, const Holders& holders) {
  auto devices = devices_;
  for (auto& [uuid, setting] : devices) setting = wanted(std::move(setting), policy, holders(uuid));
  if (const auto good = keep(policy, devices); !good) return good;
  desired_ = policy;
  devices_ = std::move(devices);
  return {};
}

bool Policies::settle(const Holders& holders) {
  auto devices = devices_;
  bool changed = false;
  for (auto& [uuid, setting] : devices) {
    if (!setting.pending()) continue;
    setting = settled(std::move(setting), holders(uuid));
    changed |= !setting.pending();
  }
  if (changed)
    if (const auto good = keep(desired_, devices); !good) {
      os::log::error("{}", good.error().message);
      return false;
    }
  devices_ = std::move(devices);
  return changed;
}

const Setting<Policy>& Policies::of(const Uuid& uuid) const {
  static const Setting<Policy> unknown;
  const auto found = devices_.find(uuid);
  return found == devices_.end() ? unknown : found->second;
}

}  // namespace carve::node
